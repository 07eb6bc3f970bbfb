"""``python -m dragoman`` is the ``dragoman`` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line, or say which extra it needs: the core install has none."""
    try:
        from .cli.main import main as run
    except ImportError as error:
        raise SystemExit(f"The dragoman command needs {error.name}: pip install 'dragoman[all]'") from None
    run()


if __name__ == "__main__":
    main()
