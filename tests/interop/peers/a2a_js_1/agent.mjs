// The bench's agent on @a2a-js/sdk 1: both versions on JSON-RPC (/), HTTP+JSON (/ and /v1) and one gRPC port.
import { randomUUID } from "node:crypto";
import { AGENT_CARD_PATH } from "@a2a-js/sdk";
import { createLegacyAwarePushNotificationSender } from "@a2a-js/sdk/compat/v0_3/server";
import { LegacyA2AService, legacyGrpcService } from "@a2a-js/sdk/compat/v0_3/server/grpc";
import { AgentEvent, DefaultRequestHandler, InMemoryPushNotificationStore, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import express from "express";
import { places, serve } from "./hosting.mjs";
import { command, messageOut, partOut, stateIn, stateOut } from "./translate.mjs";
import { EXTENDED_SKILL, INTERRUPTED, perform } from "./vocabulary.mjs";

class Actor {
  #canceled = new Set();

  async execute(context, bus) {
    const { userMessage, taskId, contextId, task } = context;
    const resumed = task !== undefined && INTERRUPTED.has(stateIn(task.status.state));
    let opened = task !== undefined;
    const status = (state, text) => ({
      state: stateOut(state),
      message: text ? messageOut(randomUUID(), "ROLE_AGENT", [{ text }], { taskId, contextId }) : undefined,
      timestamp: new Date().toISOString(),
    });
    const become = (state, text) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, text), metadata: undefined }));
    for await (const action of perform(command(userMessage), resumed)) {
      if (this.#canceled.has(taskId)) {
        become("canceled");
        break;
      }
      if ("say" in action) {
        bus.publish(AgentEvent.message(messageOut(randomUUID(), "ROLE_AGENT", [{ text: action.say }], { contextId })));
        break;
      }
      if (!opened) {
        bus.publish(
          AgentEvent.task({
            id: taskId,
            contextId,
            status: status("submitted"),
            artifacts: [],
            history: [userMessage],
            metadata: undefined,
          }),
        );
        opened = true;
      }
      if ("become" in action) become(action.become, action.text);
      else {
        const back = "back" in action;
        const name = back ? "back" : action.give;
        bus.publish(
          AgentEvent.artifactUpdate({
            taskId,
            contextId,
            artifact: {
              artifactId: `${name}-1`,
              name,
              description: "",
              parts: back ? userMessage.parts : action.parts.map(partOut),
              metadata: undefined,
              extensions: [],
            },
            append: action.append ?? false,
            lastChunk: action.last ?? true,
            metadata: undefined,
          }),
        );
      }
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.#canceled.add(taskId);
  }
}

const http = `http://${places.http}`;
const skill = (name) => ({
  id: name,
  name,
  description: "Acts out the bench's script.",
  tags: ["bench"],
  examples: [],
  inputModes: [],
  outputModes: [],
  securityRequirements: [],
});
const bindings = { JSONRPC: `${http}/`, "HTTP+JSON": http, GRPC: places.grpc };
const card = {
  name: "bench agent on @a2a-js/sdk 1",
  description: "Does what it is told.",
  version: "1",
  supportedInterfaces: ["1.0", "0.3"].flatMap((protocolVersion) =>
    Object.entries(bindings).map(([protocolBinding, url]) => ({ url, protocolBinding, protocolVersion, tenant: "" })),
  ),
  provider: undefined,
  capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [skill("script")],
  signatures: [],
};
const hooks = new InMemoryPushNotificationStore();
const requestHandler = new DefaultRequestHandler(
  card,
  new InMemoryTaskStore(),
  new Actor(),
  undefined,
  hooks,
  createLegacyAwarePushNotificationSender(hooks),
  { ...card, skills: [...card.skills, skill(EXTENDED_SKILL)] },
);
const user = { isAuthenticated: true, userName: "bench" }; // or there is no extended card
const options = { requestHandler, userBuilder: async () => user, legacyCompat: { enabled: true } };
const app = express();
const rpc = jsonRpcHandler(options);
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler, legacyCompat: { enabled: true } }));
app.use((request, reply, next) => (request.path === "/" ? rpc(request, reply, next) : next()));
app.use(restHandler(options));
const services = [
  [A2AService, grpcService(options)],
  [LegacyA2AService, legacyGrpcService(options)],
];
await serve(app, services, card.supportedInterfaces);
