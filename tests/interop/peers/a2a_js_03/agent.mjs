// The bench's agent on @a2a-js/sdk 0.3: JSON-RPC at /, HTTP+JSON under /v1, gRPC on a port of its own.
import { randomUUID } from "node:crypto";
import { AGENT_CARD_PATH } from "@a2a-js/sdk";
import {
  DefaultPushNotificationSender,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import express from "express";
import { places, serve } from "./hosting.mjs";
import { command, partOut } from "./translate.mjs";
import { EXTENDED_SKILL, INTERRUPTED, perform } from "./vocabulary.mjs";

class Actor {
  #canceled = new Set();

  async execute(context, bus) {
    const { userMessage, taskId, contextId, task } = context;
    const resumed = task !== undefined && INTERRUPTED.has(task.status.state);
    let opened = task !== undefined;
    const say = (text) => ({
      kind: "message",
      messageId: randomUUID(),
      role: "agent",
      contextId,
      parts: [{ kind: "text", text }],
    });
    for await (const action of perform(command(userMessage), resumed)) {
      if (this.#canceled.has(taskId)) {
        bus.publish({ kind: "status-update", taskId, contextId, status: { state: "canceled" }, final: true });
        break;
      }
      if ("say" in action) {
        bus.publish(say(action.say));
        break;
      }
      if (!opened) {
        bus.publish({
          kind: "task",
          id: taskId,
          contextId,
          status: { state: "submitted", timestamp: new Date().toISOString() },
          history: [userMessage],
          artifacts: [],
        });
        opened = true;
      }
      if ("become" in action) {
        const status = { state: action.become, timestamp: new Date().toISOString() };
        if (action.text) status.message = { ...say(action.text), taskId };
        const final = !["submitted", "working"].includes(action.become);
        bus.publish({ kind: "status-update", taskId, contextId, status, final });
      } else {
        const back = "back" in action;
        const name = back ? "back" : action.give;
        bus.publish({
          kind: "artifact-update",
          taskId,
          contextId,
          artifact: { artifactId: `${name}-1`, name, parts: back ? userMessage.parts : action.parts.map(partOut) },
          append: action.append ?? false,
          lastChunk: action.last ?? true,
        });
      }
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.#canceled.add(taskId);
  }
}

const url = `http://${places.http}/`;
const skill = (name) => ({ id: name, name, description: "Acts out the bench's script.", tags: ["bench"] });
const card = {
  name: "bench agent on @a2a-js/sdk 0.3",
  description: "Does what it is told.",
  version: "1",
  protocolVersion: "0.3.0",
  url,
  preferredTransport: "JSONRPC",
  additionalInterfaces: [
    { transport: "JSONRPC", url },
    { transport: "HTTP+JSON", url: `http://${places.http}` },
    { transport: "GRPC", url: places.grpc },
  ],
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  supportsAuthenticatedExtendedCard: true,
  skills: [skill("script")],
};
const hooks = new InMemoryPushNotificationStore();
const requestHandler = new DefaultRequestHandler(
  card,
  new InMemoryTaskStore(),
  new Actor(),
  undefined,
  hooks,
  new DefaultPushNotificationSender(hooks),
  { ...card, skills: [...card.skills, skill(EXTENDED_SKILL)] },
);
const user = { isAuthenticated: true, userName: "bench" }; // or there is no extended card
const options = { requestHandler, userBuilder: async () => user };
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use((request, reply, next) => (request.path.startsWith("/v1/") ? rest : rpc)(request, reply, next));
const rest = restHandler(options);
const rpc = jsonRpcHandler(options);
const interfaces = card.additionalInterfaces.map((one) => ({
  protocolBinding: one.transport,
  protocolVersion: "0.3",
  url: one.url,
}));
await serve(app, [[A2AService, grpcService(options)]], interfaces);
