// What the bench's agents do, by the first word they are told: kit/vocabulary.py again, for agents in JavaScript.
import { setTimeout as sleep } from "node:timers/promises";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
export const FILE_PARTS = [
  { raw: PIXEL, mediaType: "image/png", filename: "dot.png" },
  { url: "https://example.com/dot.png", mediaType: "image/png", filename: "dot.png" },
];
const TICK = 100;
export const EXTENDED_SKILL = "secret";
export const INTERRUPTED = new Set(["input-required", "auth-required"]);

const become = (state, text = "") => ({ become: state, text });
const give = (name, parts, more = {}) => ({ give: name, parts, append: false, last: true, ...more });

/** The actions for one message; `resumed` when it answers a question that the task had asked. */
export async function* perform(text, resumed) {
  const at = text.trim().indexOf(" ");
  const [word, rest] = at < 0 ? [text.trim(), ""] : [text.trim().slice(0, at), text.trim().slice(at + 1)];
  if (word === "say" && !resumed) {
    yield { say: rest };
    return;
  }
  yield become("working");
  if (resumed) {
    yield give("answer", [{ text }]);
    yield become("completed");
    return;
  }
  const count = Number.parseInt(rest);
  switch (word) {
    case "chunks":
      for (let n = 1; n <= count; n++)
        yield give("chunks", [{ text: `chunk ${n} ` }], { append: n > 1, last: n === count });
      break;
    case "slow":
      for (let n = 1; n <= count; n++) {
        await sleep(TICK); // before, so that the last word and the end come together
        yield become("working", `step ${n} of ${count}`);
      }
      break;
    case "ask":
      yield become("input-required", rest);
      return;
    case "auth":
      yield become("auth-required", rest);
      return;
    case "fail":
      yield become("failed", rest);
      return;
    case "reject":
      yield become("rejected", rest);
      return;
    case "file":
      yield give("file", FILE_PARTS);
      break;
    case "data":
      yield give("data", [{ data: JSON.parse(rest) }]);
      break;
    case "back":
      yield { back: true };
      break;
    default:
      yield give("echo", [{ text: word === "echo" ? rest : text }]);
  }
  yield become("completed");
}
