// A client in JavaScript as a driver of the bench: it is told what to do in JSON lines, and answers in them.
// The steps and what must come of them are in Python; the other end of this is remote_client.py.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    version: { type: "string", default: "1.0" },
    binding: { type: "string", default: "JSONRPC" },
    via: { type: "string", multiple: true, default: [] },
  },
});
const via = new Map(values.via.map((pair) => pair.split("=")));

export const given = { url: positionals[0], version: values.version, binding: values.binding };

/** The URL or authority that leads there by way of the recorder. */
export function routed(url) {
  const authority = url.includes("://") ? new URL(url).host : url;
  return via.has(authority) ? url.replace(authority, via.get(authority)) : url;
}

export class Unavailable extends Error {}

const print = (line) => console.log(JSON.stringify(line));
const running = new Map();

async function answer(driver, { id, call, args }) {
  try {
    const result = driver[call](...args);
    if (result?.[Symbol.asyncIterator]) {
      running.set(id, result);
      for await (const item of result) print({ id, item });
      print({ id, end: true });
    } else print({ id, value: (await result) ?? null });
  } catch (error) {
    if (error instanceof Unavailable) print({ id, unavailable: error.message });
    else print({ id, error: driver.typed(error) });
  } finally {
    running.delete(id);
  }
}

/** `connect` gives the driver, or throws. */
export async function drive(connect) {
  let driver;
  try {
    driver = await connect(given);
  } catch (error) {
    print({ broken: `${error.name}: ${error.message}` });
    process.exit(1);
  }
  print({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const told = JSON.parse(line);
    if (told.cancel) running.get(told.cancel)?.return?.();
    else answer(driver, told);
  }
  process.exit(0);
}
