"""gRPC services that stand beside A2A's on the same port: health and reflection."""

from __future__ import annotations

from collections.abc import Iterable

from ...faces import Face
from ...protocol.operations import GRPC_SERVICE
from ...protocol.proto_files import HEALTH_SERVICE
from .calls import Services

__all__ = ["Services", "services_beside"]


def services_beside(faces: Iterable[Face], *, health: bool, reflection: bool) -> Services:
    """The services that are wanted, beside those of the gRPC faces among ``faces``; they are loaded only if wanted."""
    names = [GRPC_SERVICE[face.version] for face in faces if face.binding == "GRPC"]
    services = Services()
    if health:
        from .health import Health

        services.add(Health(names, services.closing).methods)
        names.append(HEALTH_SERVICE)
    if reflection:
        from .reflection import Reflection

        services.add(Reflection(names).methods)
    return services
