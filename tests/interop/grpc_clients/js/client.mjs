// A gRPC client that knows no schema: it sends raw bytes to any method and says in one line of JSON what came of it.
//
//   node client.mjs -target 127.0.0.1:8080 unary  /lf.a2a.v1.A2AService/GetTask -hex 0a0131
//   node client.mjs -target 127.0.0.1:8080 stream /lf.a2a.v1.A2AService/SubscribeToTask -hex 0a0131 -max 3
//   node client.mjs -target 127.0.0.1:8080 unread STREAM-METHOD -beside UNARY-METHOD -count 50
//   node client.mjs -target 127.0.0.1:8080 load   METHOD -count 10000 -parallel 8
//   node client.mjs -target 127.0.0.1:8080 cancel METHOD -count 500 -beside UNARY-METHOD
//
// All commands use one connection. tests/interop/grpc_clients/go takes the same arguments and answers alike
// (-deadline and -settle are milliseconds here, durations such as 300ms there).
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import grpc from "@grpc/grpc-js";

const options = { target: "127.0.0.1:8080", deadline: "30000", settle: "1000", count: "100", parallel: "8", max: "0" };
const switches = { gzip: false, quiet: false };
const words = [];
for (let i = 2; i < process.argv.length; i++) {
  const word = process.argv[i];
  if (!word.startsWith("-")) words.push(word);
  else if (word.slice(1) in switches) switches[word.slice(1)] = true;
  else options[word.slice(1)] = process.argv[++i];
}
const [command, method] = words;
if (words.length !== 2) {
  console.error("usage: client.mjs [options] unary|stream|unread|load|cancel METHOD");
  process.exit(2);
}
const deadline = Number.parseInt(options.deadline);
const settle = Number.parseInt(options.settle);
const count = Number.parseInt(options.count);
const max = Number.parseInt(options.max);

const pem = (path) => (path ? readFileSync(path) : null);
const credentials = options.ca
  ? grpc.credentials.createSsl(pem(options.ca), pem(options.key), pem(options.cert))
  : grpc.credentials.createInsecure();
const client = new grpc.Client(options.target, credentials, {
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  "grpc.enable_retries": 0,
  ...(options.authority ? { "grpc.default_authority": options.authority } : {}),
  ...(switches.gzip ? { "grpc.default_compression_algorithm": grpc.compressionAlgorithms.gzip } : {}),
});

const request = options.hex
  ? Buffer.from(options.hex, "hex")
  : options.size
    ? Buffer.alloc(Number.parseInt(options.size), "dragoman")
    : Buffer.from(options.text ?? "");
const same = (bytes) => bytes;
const metadata = () => {
  const all = new grpc.Metadata();
  for (const pair of (options.meta ?? "").split(",").filter(Boolean)) {
    const at = pair.indexOf("=");
    all.add(pair.slice(0, at), pair.slice(at + 1));
  }
  return all;
};

const out = { command, code: "OK", number: 0, count: 0, bytes: 0, echoed: false, seconds: 0 };
const add = (reply) => {
  if (out.count === 0) out.echoed = reply.equals(request);
  out.count += 1;
  out.bytes += reply.length;
  if (!switches.quiet && (command === "unary" || command === "stream")) (out.replies ??= []).push(reply.toString("hex"));
};
const fail = (error) => {
  const text = `${grpc.status[error.code]}: ${error.details}`;
  out.failed ??= {};
  out.failed[text] = (out.failed[text] ?? 0) + 1;
};
const end = (error) => {
  if (!error) return;
  out.code = grpc.status[error.code];
  out.number = error.code;
  out.message = error.details;
  out.metadata = error.metadata?.toJSON();
  const details = error.metadata?.get("grpc-status-details-bin")[0];
  if (details) out.details = details.toString("hex");
};

/** Resolves to the error, if any; `calls` collects what can be cancelled. */
const unary = (name, calls) =>
  new Promise((resolve) => {
    const until = { deadline: Date.now() + deadline };
    const call = client.makeUnaryRequest(name, same, same, request, metadata(), until, (error, reply) => {
      if (!error && (command === "unary" || command === "load")) add(reply);
      resolve(error);
    });
    calls?.push(call);
  });
const open = () => client.makeServerStreamRequest(method, same, same, request, metadata(), { deadline: Date.now() + deadline });

/** Reads `stream` to its end or to `limit` messages; resolves to the error, if any. */
const read = (stream, limit) =>
  new Promise((resolve) => {
    stream.on("data", (reply) => {
      if (limit && out.count >= limit) return;
      add(reply);
      if (limit && out.count >= limit) {
        stream.pause();
        resolve(null);
      }
    });
    stream.on("end", () => resolve(null));
    stream.on("error", resolve);
  });

const started = process.hrtime.bigint();
const since = (from) => Number(process.hrtime.bigint() - from) / 1e6;
if (command === "unary") end(await unary(method));
else if (command === "stream") {
  const stream = open();
  end(await read(stream, max));
  stream.on("error", () => {});
  stream.cancel();
} else if (command === "unread") {
  const stream = open();
  await read(stream, 1);
  await sleep(settle);
  let well = 0;
  out.worst_ms = 0;
  for (let i = 0; i < count; i++) {
    const began = process.hrtime.bigint();
    const error = await unary(options.beside);
    if (error) fail(error);
    else well += 1;
    out.worst_ms = Math.max(out.worst_ms, since(began));
  }
  out.beside = `${well} of ${count}`;
  stream.removeAllListeners("data");
  const rest = read(stream, 0);
  stream.resume();
  end(await rest);
} else if (command === "load") {
  let left = count;
  out.worst_ms = 0;
  const worker = async () => {
    while (left-- > 0) {
      const began = process.hrtime.bigint();
      const error = await unary(method);
      if (error) fail(error);
      out.worst_ms = Math.max(out.worst_ms, since(began));
    }
  };
  await Promise.all(Array.from({ length: Number.parseInt(options.parallel) }, worker));
} else if (command === "cancel") {
  const calls = [];
  const ends = Array.from({ length: count }, () => unary(method, calls));
  const innocent = unary(method);
  await sleep(settle);
  for (const call of calls) call.cancel();
  await Promise.all(ends);
  const after = await unary(options.beside);
  out.beside = `after: ${after ? grpc.status[after.code] : "OK"}`;
  end(await innocent);
} else {
  console.error(`unknown command ${command}`);
  process.exit(2);
}
out.seconds = since(started) / 1000;
console.log(JSON.stringify(out));
client.close();
