"""``python -m dragoman`` is the ``dragoman`` command."""

from __future__ import annotations

from .errors import ConfigError

try:
    from .cli.main import main
except ImportError as error:  # the core install has no command line
    raise SystemExit(
        f"{ConfigError(f'The command line needs an extra: pip install dragoman[all] ({error.name})')}"
    ) from None

if __name__ == "__main__":
    main()
