// How an agent in JavaScript is started: its options, and the one line that says it is ready (see kit/hosting.py).
import { parseArgs } from "node:util";
import grpc from "@grpc/grpc-js";

const { values } = parseArgs({ options: { "public-http": { type: "string" }, "public-grpc": { type: "string" } } });

/** The authorities that the card names. */
export const places = { http: values["public-http"], grpc: values["public-grpc"] };

/** Serve the Express app and the gRPC services until told to stop. */
export async function serve(app, services, interfaces) {
  const grpcServer = new grpc.Server();
  for (const [definition, implementation] of services) grpcServer.addService(definition, implementation);
  const grpcPort = await new Promise((resolve, reject) =>
    grpcServer.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  );
  const http = app.listen(0, "127.0.0.1", () =>
    console.log(
      JSON.stringify({
        url: `http://${places.http}`,
        card: `http://${places.http}/.well-known/agent-card.json`,
        http: `127.0.0.1:${http.address().port}`,
        grpc: `127.0.0.1:${grpcPort}`,
        interfaces,
      }),
    ),
  );
  for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => process.exit(0));
}
