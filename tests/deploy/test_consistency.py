"""What is in ``deploy/`` agrees with the command line, with the configuration, and with itself. No engine runs here."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from dragoman.cli.main import app
from dragoman.gateway.config import Config
from dragoman.gateway.config.reading import parse
from dragoman.server.host import Limits

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
CONFIG_PLACE = "/etc/dragoman/gateway.toml"
CREDENTIALS = "/run/credentials/dragoman-gateway.service/"
SECRETS = "/run/secrets/"


# -- reading the files


class Instruction(NamedTuple):
    """One line of a Dockerfile, joined; ``stage`` counts from 0."""

    stage: int
    word: str
    text: str


def dockerfile() -> list[Instruction]:
    joined = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^\s*#.*\n", "", (DEPLOY / "Dockerfile").read_text()))
    found: list[Instruction] = []
    stage = -1
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, text = line.partition(" ")
        stage += word == "FROM"
        found.append(Instruction(stage, word, text.strip()))
    return found


def last(word: str) -> str:
    """The text of the image's own last instruction of that name."""
    image = dockerfile()
    return [one.text for one in image if one.word == word and one.stage == image[-1].stage][-1]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def manifest(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((KUBERNETES / f"{name}.yaml").read_text())
    return found


def pod() -> dict[str, Any]:
    found: dict[str, Any] = manifest("deployment")["spec"]["template"]["spec"]
    return found


def unit() -> dict[str, dict[str, list[str]]]:
    """A systemd unit: sections, keys, all values of each."""

    found: dict[str, dict[str, list[str]]] = {}
    for line in (DEPLOY / "systemd" / "dragoman-gateway.service").read_text().splitlines():
        if line.startswith("["):
            keys = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            keys.setdefault(key, []).append(value)
    return found


def service(key: str) -> str:
    (value,) = unit()["Service"][key]
    return value


def gateways() -> list[dict[str, Any]]:
    return [one for name, one in compose()["services"].items() if name.startswith("gateway")]


# -- commands


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line of ours, and where it stands."""
    entry = json.loads(last("ENTRYPOINT"))
    yield "Dockerfile", [*entry, *json.loads(last("CMD"))]
    for name, one in compose()["services"].items():
        if one["image"] == "dragoman":
            yield f"compose {name}", [*entry, *one["command"]]
    for container in pod()["containers"]:
        yield "deployment", [*entry, *container["args"]]
    yield "unit", shlex.split(service("ExecStart"))
    for page in sorted([*DEPLOY.rglob("*"), ROOT / "docs" / "operations.md"]):
        if page.is_file():
            for line in re.findall(r"`(dragoman gateway [^`\n]+)`|^\$ (dragoman [^#\n]+)", page.read_text(), re.M):
                yield f"{page.name}: {''.join(line)}", shlex.split("".join(line))


@pytest.mark.parametrize(("where", "command"), [pytest.param(*one, id=one[0]) for one in commands()])
def test_every_command_is_one_of_the_command_line(where: str, command: list[str]) -> None:
    assert Path(command[0]).name == "dragoman"
    _, _, unused = app.parse_args(command[1:], exit_on_error=False, print_error=False)[:3]
    assert not unused, where


# -- configurations


def load(text: str, tmp_path: Path, place: str, names: list[str]) -> Config:
    """A configuration, with those secrets, and no others, at their place."""
    for name in names:
        (tmp_path / name).write_text(f"secret-of-{name}\n")
    return parse(text.replace(place, f"{tmp_path}/"), str(tmp_path / "gateway.toml"), environment={})


@pytest.fixture
def container_config(tmp_path: Path) -> Config:
    """That of the containers, with the secrets that Compose gives to the first gateway."""
    return load((DEPLOY / "gateway.toml").read_text(), tmp_path, SECRETS, gateways()[0]["secrets"])


@pytest.fixture
def machine_config(tmp_path: Path) -> Config:
    """That of the unit, with the credentials that it loads."""
    names = [one.partition(":")[0] for one in unit()["Service"]["LoadCredential"]]
    return load((DEPLOY / "systemd" / "gateway.toml").read_text(), tmp_path, CREDENTIALS, names)


def test_kubernetes_has_the_configuration_and_the_secrets_of_the_containers(
    tmp_path: Path, container_config: Config
) -> None:
    text = manifest("configmap")["data"]["gateway.toml"]
    assert text == (DEPLOY / "gateway.toml").read_text()
    volumes = {one["name"]: one for one in pod()["volumes"]}
    paths = [item["path"] for item in volumes["secrets"]["secret"]["items"]]
    (tmp_path / "again").mkdir()
    assert load(text, tmp_path / "again", SECRETS, paths).upstream == container_config.upstream


def test_the_unit_finds_its_state_and_its_credentials(machine_config: Config) -> None:
    assert machine_config.store.url == f"sqlite:///var/lib/{service('StateDirectory')}/gateway.db"
    assert service("WorkingDirectory") == f"/var/lib/{service('StateDirectory')}"
    assert machine_config.upstream[0].bearer is not None


def test_every_gateway_of_compose_is_the_same_gateway() -> None:
    one, other = ({key: value for key, value in each.items() if key not in ("ports", "build")} for each in gateways())
    assert one == other
    secrets = compose()["secrets"]
    assert set(one["secrets"]) <= secrets.keys()
    assert all(secret["file"].startswith("./secrets/") for secret in secrets.values())


def test_the_database_of_compose_is_the_one_of_the_configuration(container_config: Config) -> None:
    postgres = compose()["services"]["postgres"]
    user, name = postgres["environment"]["POSTGRES_USER"], postgres["environment"]["POSTGRES_DB"]
    assert container_config.store.url == f"postgresql://{user}@postgres:5432/{name}"
    assert container_config.store.password is not None
    file = postgres["environment"]["POSTGRES_PASSWORD_FILE"]
    assert Path(file).name in postgres["secrets"] and str(Path(file)) in (DEPLOY / "gateway.toml").read_text()


# -- places


def test_configurations_are_where_the_commands_look(container_config: Config) -> None:
    assert [command for _, command in commands() if "--config" in command]
    for where, command in commands():
        if "--config" in command and not where.endswith(".toml"):
            assert command[command.index("--config") + 1] in (CONFIG_PLACE, "gateway.toml"), where
    for one in gateways():
        assert f"./gateway.toml:{CONFIG_PLACE}:ro" in one["volumes"]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod()["containers"][0]["volumeMounts"]}
    assert mounts["config"] == str(Path(CONFIG_PLACE).parent) and f"{mounts['secrets']}/" == SECRETS
    assert all((DEPLOY / volume.split(":")[0]).resolve().is_file() for volume in _bound())


def _bound() -> Iterator[str]:
    for one in compose()["services"].values():
        yield from (volume for volume in one.get("volumes", ()) if volume.startswith("."))


def test_ports_are_those_of_the_configuration(container_config: Config) -> None:
    shared, own = container_config.server.port, container_config.observe.port
    assert container_config.server.host == container_config.observe.host == "0.0.0.0"
    assert last("EXPOSE").split() == [str(shared), str(own)]
    assert f"127.0.0.1:{own}/healthz" in last("HEALTHCHECK")
    ports = {one["name"]: one["containerPort"] for one in pod()["containers"][0]["ports"]}
    assert ports == {"agents": shared, "observe": own}
    for one in gateways():
        assert [port.rpartition(":")[2] for port in one["ports"]] == [str(shared)]
    annotations = manifest("deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(own)
    assert {port["targetPort"] for port in manifest("service")["spec"]["ports"]} == {"agents"}
    named = [rule["ports"][0]["port"] for rule in manifest("network")["spec"]["ingress"]]
    assert named == ["agents", "observe"]


def test_the_agents_and_the_gateways_reach_each_other_by_the_names_that_they_have(container_config: Config) -> None:
    shared = container_config.server.port
    callback = container_config.relay.callback_url
    assert callback == f"http://{manifest('service')['metadata']['name']}:{shared}"
    assert shared in [port["port"] for port in manifest("service")["spec"]["ports"]]
    for one in gateways():
        assert callback == f"http://{one['networks']['default']['aliases'][0]}:{shared}"
    command = compose()["services"]["agent"]["command"]
    assert container_config.upstream[0].url == f"http://agent:{command[command.index('--port') + 1]}"


def test_probes_ask_the_pages_that_there_are() -> None:
    container = pod()["containers"][0]
    paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert {container[name]["httpGet"]["port"] for name in paths} == {"observe"}
    annotations = manifest("deployment")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] == "/metrics"


# -- who it runs as, and how it ends


def test_nobody_is_root_and_everybody_is_the_same_user() -> None:
    user, group = last("USER").split(":")
    context, container = pod()["securityContext"], pod()["containers"][0]["securityContext"]
    assert int(user) != 0 and context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (int(user), int(group), int(group))
    made = next(one.text for one in dockerfile() if one.word == "RUN" and "useradd" in one.text)
    assert f"--uid {user}" in made and f"--gid {group}" in made and last("WORKDIR") in made
    assert container["readOnlyRootFilesystem"] and not container["allowPrivilegeEscalation"]
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert service("DynamicUser") == service("NoNewPrivileges") == "yes"


def test_there_is_time_to_drain_and_to_finish_before_the_kill(container_config: Config, machine_config: Config) -> None:
    finish = Limits().graceful_timeout
    for one in gateways():
        assert float(one["stop_grace_period"].removesuffix("s")) > container_config.server.drain + finish
    before = pod()["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod()["terminationGracePeriodSeconds"] > before + container_config.server.drain + finish
    assert float(service("TimeoutStopSec")) > machine_config.server.drain + finish
    probe = pod()["containers"][0]["readinessProbe"]
    assert container_config.server.drain > probe["periodSeconds"] * probe["failureThreshold"]


def test_signals_are_those_that_the_gateway_knows() -> None:
    assert last("STOPSIGNAL") == service("KillSignal") == "SIGTERM"
    assert {one["stop_signal"] for one in gateways()} == {"SIGTERM"}
    assert service("ExecReload") == "/bin/kill -HUP $MAINPID"


def test_labels_select_the_pods_of_the_deployment() -> None:
    labels = manifest("deployment")["spec"]["template"]["metadata"]["labels"]
    assert manifest("deployment")["spec"]["selector"]["matchLabels"] == labels
    assert manifest("service")["spec"]["selector"] == labels
    assert manifest("disruption")["spec"]["selector"]["matchLabels"] == labels
    assert manifest("network")["spec"]["podSelector"]["matchLabels"] == labels
    assert manifest("disruption")["spec"]["minAvailable"] < manifest("deployment")["spec"]["replicas"]


def test_every_manifest_is_listed_and_refers_to_what_there_is() -> None:
    listed = {name.removesuffix(".yaml") for name in manifest("kustomization")["resources"]}
    assert listed == {file.stem for file in KUBERNETES.glob("*.yaml")} - {"kustomization"}
    volumes = {one["name"]: one for one in pod()["volumes"]}
    assert volumes["config"]["configMap"]["name"] == manifest("configmap")["metadata"]["name"]
    assert {mount["name"] for mount in pod()["containers"][0]["volumeMounts"]} == volumes.keys()
    asked = (KUBERNETES / "kustomization.yaml").read_text()
    assert f"secret generic {volumes['secrets']['secret']['secretName']}" in asked
    for item in volumes["secrets"]["secret"]["items"]:
        assert f"--from-file={item['key']}=" in asked


# -- the image


def test_the_image_is_built_of_what_is_let_into_it() -> None:
    allowed = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = {
        source
        for one in dockerfile()
        if one.word == "COPY" and not one.text.startswith("--from")
        for source in one.text.split()[:-1]
    }
    assert copied == allowed
    assert all((ROOT / source).exists() for source in copied)


def test_the_image_installs_in_the_place_that_it_keeps() -> None:
    (place,) = re.findall(r"UV_PROJECT_ENVIRONMENT=(\S+)", " ".join(one.text for one in dockerfile()))
    assert f"--from=build {place} {place}" in last("COPY")
    assert f"PATH={place}/bin:$PATH" in last("ENV")


def test_bases_are_pinned_and_new_enough() -> None:
    bases = [one.text.split()[0] for one in dockerfile() if one.word == "FROM"]
    assert len(set(bases)) == 1 and len(bases) == 2
    found = re.fullmatch(r"python:3\.(\d+)-slim-bookworm", bases[0])
    wanted = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert found and wanted and int(found[1]) >= int(wanted[1])
    installers = [re.findall(r"uv==([0-9.]+)", file.read_text()) for file in (DEPLOY / "Dockerfile", ROOT / "Makefile")]
    assert installers[0] == installers[1] and len(installers[0]) == 1
