"""A client in another language as a driver of the bench: `remote_client RUNTIME SCRIPT URL OPTIONS`."""

from __future__ import annotations

import asyncio
import sys

from .kit import report
from .kit.options import options
from .kit.remote import NotConnected, Remote


async def main() -> int:
    runtime, script, *arguments = sys.argv[1:]
    given = options(arguments)
    driver = Remote(given.version, given.binding)
    command = [runtime, script, given.url, "--version", given.version, "--binding", given.binding]
    command += [argument for pair in given.via.items() for argument in ("--via", "=".join(pair))]
    try:
        await driver.start(command)
    except NotConnected as error:
        report.broken(str(error))
    try:
        return await report.run(driver, given)
    finally:
        await driver.close()


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
