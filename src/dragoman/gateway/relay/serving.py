"""Delivering what is in the outbox: lines are claimed, told what waits for them, and given back.

Rules of this module:

- One attempt at a time per line, in order, until it is acknowledged or given up. What was acknowledged is forgotten
  only after that, so a process that dies delivers again, never less.
- A line that failed is given back with the time of its next attempt: waiting costs no memory and outlives us.
- A claim is for a time, which is prolonged while we live. No attempt begins that could outlast it.
- While half of the attempts are under way, one host has a quarter of them at most: who is slow or does not answer
  holds up nobody else. What is beyond that waits a little.
- A webhook that answers 410 is forgotten. One that gave up on something goes on with the whole task.
- What others put into a shared outbox is found by looking now and then.
- A clock may be put back. Times that no line can have are brought near, so that none waits until it has caught up.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from msgspec.structs import replace

from ...errors import UnavailableError
from ...runtime.notice import GONE, Forms, Retry, acknowledged, headers, wanted_pause
from ...runtime.webhooks import Answer, AskingPost, attempted
from ...store.outbox import Change, Claim, Delivery, Settled, State, Stock
from ...store.sql.outbox import Outbox
from .telling import whole_task

log = logging.getLogger("dragoman.relay")

_NO_ANSWER = Answer(0)
_SHARED_OUT = 16  # attempts at once, from which on hosts have shares of them
_LEASES = 10  # of ours that another gateway's may take: its configuration can differ
_TOGETHER = 0.005  # seconds that what comes one after the other is gathered in


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """``in_flight``: attempts at once. ``timeout``: seconds of one. ``lease``: seconds that a claim lasts without a
    sign of life. ``poll``: seconds between looks for what others put down. ``each``: deliveries of a line that are
    taken at once. ``drain``: seconds that closing waits for attempts under way. Days that things are kept: ``dead``
    deliveries, and ``idle`` webhooks of which nothing was heard; seconds: ``ended`` ones, to know repetitions by."""

    in_flight: int = 256
    timeout: float = 15.0
    lease: float = 45.0
    poll: float = 1.0
    each: int = 8
    drain: float = 5.0
    dead: float = 14.0
    idle: float = 60.0
    ended: float = 3600.0


@dataclass(slots=True)
class Counts:
    """What the relay has done, and how much there is (``stock``, looked up now and then). ``accepted``, ``repeated``,
    ``refused``: notifications of agents. ``delivered``, ``dead``: of webhooks. ``retried``: attempts that will be
    repeated. ``coalesced``: deliveries that went out as part of a whole task. ``gone``: webhooks that said so (410)."""

    accepted: int = 0
    repeated: int = 0
    refused: int = 0
    delivered: int = 0
    retried: int = 0
    coalesced: int = 0
    dead: int = 0
    gone: int = 0
    stock: Stock = field(default_factory=Stock)


class Serving:
    """Serves the lines of an outbox. :meth:`start` begins, :meth:`aclose` ends it; the outbox is its opener's to close.

    ``clock``: seconds of the epoch. ``chance``: a number from 0 to 1. Both are for tests.
    """

    def __init__(
        self,
        outbox: Outbox,
        post: AskingPost,
        forms: Forms,
        counts: Counts,
        *,
        retry: Retry = Retry(),  # noqa: B008 - frozen
        pace: Pace = Pace(),
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._outbox = outbox
        self._post = post
        self._forms = forms
        self._counts = counts
        self._retry = retry
        self._pace = pace
        self._clock = clock
        self._chance = chance
        self._holder = secrets.token_hex(8)
        self._held_until = 0.0
        self._wake = asyncio.Event()
        self._lines: set[asyncio.Task[None]] = set()
        self._at_host: Counter[str] = Counter()
        self._settled: list[tuple[Settled, asyncio.Future[None]]] = []
        self._delivered: list[int] = []
        self._keeping: asyncio.Task[None] | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def start(self) -> None:
        """Begin. Raises ``UnavailableError``."""
        if not self._outbox.shared:
            await self._outbox.release()  # nobody else serves from it, so whoever held something is dead
        self._held_until = self._clock() + self._pace.lease
        loops = (self._serve, self._live, self._tidy)
        self._tasks = tuple(asyncio.create_task(loop(), name=f"dragoman-relay{loop.__name__}") for loop in loops)

    def stir(self) -> None:
        """There is something new to deliver."""
        self._wake.set()

    async def aclose(self) -> None:
        """Let attempts under way come to their end, if that takes no longer than ``drain``; give all back."""
        for task in self._tasks[:1]:  # nothing new is claimed
            task.cancel()
        if self._lines:
            await asyncio.wait(self._lines, timeout=self._pace.drain)
        running = (*self._tasks, *self._lines)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._keeping is not None:
            await asyncio.wait((self._keeping,), timeout=self._pace.drain)
            self._keeping.cancel()
        try:
            await self._outbox.release(self._holder)
        except UnavailableError:
            log.warning("Claims could not be given back: they end by themselves")
        await self._post.aclose()

    # -- claiming

    async def _serve(self) -> None:
        while True:
            self._wake.clear()
            try:
                due = await self._outbox.next_due()
                free = self._pace.in_flight - len(self._lines)
                if due is not None and due <= self._clock() and free > 0:
                    await self._claim(free)
                    await asyncio.sleep(_TOGETHER)  # what becomes due meanwhile is claimed together
                else:
                    await self._pause(due)
            except UnavailableError as error:
                log.warning("Deliveries cannot be looked up now: %s", error)
                await asyncio.sleep(self._pace.poll)
            except Exception:
                log.exception("Deliveries could not be looked up")
                await asyncio.sleep(self._pace.poll)

    async def _claim(self, lines: int) -> None:
        until = self._clock() + self._pace.lease
        for claim in await self._outbox.claim(self._holder, until, lines=lines, each=self._pace.each):
            host = _host(claim)
            if self._has_its_share(host):
                self._postpone(claim)
                continue
            self._at_host[host] += 1
            task = asyncio.create_task(self._line(claim))
            self._lines.add(task)
            task.add_done_callback(partial(self._left, host))

    def _left(self, host: str, task: asyncio.Task[None]) -> None:
        self._lines.discard(task)
        self._at_host[host] -= 1
        if not self._at_host[host]:
            del self._at_host[host]
        self._wake.set()

    def _has_its_share(self, host: str) -> bool:
        most = self._pace.in_flight
        return _SHARED_OUT <= most <= 2 * len(self._lines) and self._at_host[host] >= most // 4

    def _postpone(self, claim: Claim) -> None:
        """Give a line back untouched, so that lines of others are claimed before it comes again."""
        due = self._clock() + self._pace.poll * (1 + 4 * self._chance())
        self._put_down(Settled(registration_id=claim.registration.id, failures=claim.failures, due=due))

    async def _pause(self, due: float | None) -> None:
        wait = self._pace.poll if due is None else min(self._pace.poll, max(due - self._clock(), _TOGETHER))
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            pass

    # -- delivering

    async def _line(self, claim: Claim) -> None:
        try:
            settled = await self._deliver(claim)
        except asyncio.CancelledError:
            self._put_down(Settled(registration_id=claim.registration.id, failures=claim.failures))
            raise
        await self._put_down(settled)
        if settled.dead and not settled.ended:
            await self._catch_up(claim)

    async def _deliver(self, claim: Claim) -> Settled:
        one, failures = claim.registration, claim.failures
        fields = headers(one.config, self._forms[one.version].media)
        for delivery in claim.deliveries:
            if self._clock() + self._pace.timeout > self._held_until:
                break  # somebody else may have it before this attempt is over
            answer = await self._attempt(claim, fields, delivery.body)
            if not acknowledged(answer.status):
                return self._failed(claim, delivery, answer, failures + 1)
            failures = 0
            self._counts.delivered += 1
            if delivery.last:
                return Settled(registration_id=one.id, delivered=(delivery.id,), ended=True)
            self._delivered.append(delivery.id)
            self._keep_soon()
        return Settled(registration_id=one.id, failures=failures)

    async def _attempt(self, claim: Claim, fields: Mapping[str, str], body: bytes) -> Answer:
        post = self._post.ask(claim.registration.config.url, fields, body)
        try:
            return await attempted(post, self._pace.timeout, _name(claim)) or _NO_ANSWER
        except Exception:  # a fault of ours with one webhook counts as its own, and so comes to an end
            log.exception("A delivery to webhook %s failed", _name(claim))
            return _NO_ANSWER

    def _failed(self, claim: Claim, delivery: Delivery, answer: Answer, failures: int) -> Settled:
        line, now = claim.registration.id, self._clock()
        if answer.status == GONE:
            self._counts.gone += 1
            log.info("Webhook %s is gone", _name(claim))
            return Settled(registration_id=line, gone=True)
        dead = delivery.attempts + 1 >= self._retry.tries
        if dead:
            self._counts.dead += 1
            said = f"status {answer.status}" if answer.status else "no answer"
            log.warning("Webhook %s did not take delivery %d (%s): it is dead", _name(claim), delivery.id, said)
        else:
            self._counts.retried += 1
        wait = self._retry.later(failures, self._chance(), wanted_pause(answer.retry_after, now))
        return Settled(
            registration_id=line,
            failed=delivery.id,
            status=answer.status,
            dead=dead,
            failures=failures,
            due=now + wait,
            ended=dead and delivery.last,
        )

    async def _catch_up(self, claim: Claim) -> None:
        """Go on with the whole task in place of what waits behind something that was given up."""
        coalesced = 0

        def decide(state: State) -> Change | None:
            nonlocal coalesced
            line = next((line for line in state.lines if line.registration.id == claim.registration.id), None)
            if line is None:
                return None
            if state.watch.snapshot is None or not line.waiting:
                return Change(put=(replace(line.registration, behind=True),))
            coalesced = line.waiting - 1
            return Change(tell=(whole_task(state.watch.snapshot, line.registration, self._forms),))

        try:
            await self._outbox.change(claim.registration.watch_id, decide)
            self._counts.coalesced += coalesced
        except UnavailableError as error:
            log.warning("Webhook %s goes on as it was: %s", _name(claim), error)

    # -- giving back

    def _put_down(self, settled: Settled) -> asyncio.Future[None]:
        """Have it kept, together with what else came of claims; the future is done when it is."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settled.append((settled, done))
        self._keep_soon()
        return done

    def _keep_soon(self) -> None:
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep_all(), name="dragoman-relay-keep")

    async def _keep_all(self) -> None:
        try:
            while self._settled or self._delivered:
                several, self._settled = self._settled, []
                delivered, self._delivered = self._delivered, []
                await self._keep([settled for settled, _ in several], delivered)
                for _, done in several:
                    if not done.done():
                        done.set_result(None)
        finally:
            self._keeping = None

    async def _keep(self, several: Sequence[Settled], delivered: Sequence[int]) -> None:
        while True:
            try:
                await self._outbox.settle(self._holder, several, delivered)
                return
            except UnavailableError as error:
                log.warning("What was delivered cannot be put down now: %s", error)
            except Exception:
                log.exception("What was delivered could not be put down: it is delivered again")
                return
            await asyncio.sleep(self._pace.poll)

    # -- from time to time

    async def _live(self) -> None:
        """Keep what is claimed."""
        while True:
            await asyncio.sleep(self._pace.lease / 3)
            until = self._clock() + self._pace.lease
            try:
                await self._outbox.extend(self._holder, until)
                self._held_until = until
            except Exception as error:
                log.warning("Claims cannot be prolonged now: %s", error)

    async def _tidy(self) -> None:
        """Forget what is over, and look how much there is."""
        number = 0
        while True:
            try:
                if number % 20 == 0:
                    await self._prune()
                await self._bring_near()
                self._counts.stock = await self._outbox.stock()
            except Exception as error:
                log.warning("The outbox cannot be tidied now: %s", error)
            number += 1
            await asyncio.sleep(max(self._pace.poll, 5.0))

    async def _bring_near(self) -> None:
        now = self._clock()
        late = await self._outbox.bring_near(due=now + 2 * self._retry.most, until=now + _LEASES * self._pace.lease)
        if late:
            log.warning("%d webhooks waited for times too far ahead, as after a clock was put back: not any more", late)

    async def _prune(self) -> None:
        now, day, pace = self._clock(), 86_400.0, self._pace
        await self._outbox.prune(dead=now - pace.dead * day, ended=now - pace.ended, idle=now - pace.idle * day)


def _host(claim: Claim) -> str:
    return urlsplit(claim.registration.config.url).netloc.lower()


def _name(claim: Claim) -> str:
    """A webhook in the log, where neither its URL nor its token belong."""
    return f"{claim.registration.config.id} of task {claim.task_id}"
