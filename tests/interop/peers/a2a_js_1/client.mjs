// The client of @a2a-js/sdk 1 as a driver of the bench, for both versions that it speaks.
import { randomUUID } from "node:crypto";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import { drive, routed } from "./driver.mjs";
import { eventIn, messageIn, messageOut, pushIn, pushOut, taskIn } from "./translate.mjs";

const NAMES = ["TaskNotFound", "TaskNotCancelable", "PushNotificationNotSupported", "UnsupportedOperation"];
const tenant = "";

class Driver {
  constructor(client) {
    this.client = client;
  }

  #request({ parts, task_id, context_id, wait, push }) {
    return {
      tenant,
      message: messageOut(randomUUID(), "ROLE_USER", parts, { taskId: task_id, contextId: context_id }),
      configuration: {
        acceptedOutputModes: [],
        taskPushNotificationConfig: push ? pushOut(push) : undefined,
        returnImmediately: !wait,
      },
      metadata: undefined,
    };
  }

  async send(outgoing) {
    const reply = await this.client.sendMessage(this.#request(outgoing));
    return "status" in reply ? taskIn(reply) : messageIn(reply);
  }

  async *stream(outgoing) {
    for await (const event of this.client.sendMessageStream(this.#request(outgoing))) yield eventIn(event);
  }

  async get(id) {
    return taskIn(await this.client.getTask({ tenant, id }));
  }

  async cancel(id) {
    return taskIn(await this.client.cancelTask({ tenant, id, metadata: undefined }));
  }

  async *subscribe(id) {
    for await (const event of this.client.resubscribeTask({ tenant, id })) yield eventIn(event);
  }

  async list(contextId, pageSize, pageToken) {
    const page = await this.client.listTasks({
      tenant,
      contextId,
      pageSize,
      pageToken,
      status: 0,
      statusTimestampAfter: undefined,
    });
    return { tasks: page.tasks.map(taskIn), next_token: page.nextPageToken };
  }

  async push_create(taskId, config) {
    return pushIn(await this.client.createTaskPushNotificationConfig(pushOut(config, taskId)));
  }

  async push_get(taskId, id) {
    return pushIn(await this.client.getTaskPushNotificationConfig({ tenant, taskId, id }));
  }

  async push_list(taskId) {
    const page = await this.client.listTaskPushNotificationConfig({ tenant, taskId, pageSize: 0, pageToken: "" });
    return page.configs.map(pushIn);
  }

  async push_delete(taskId, id) {
    await this.client.deleteTaskPushNotificationConfig({ tenant, taskId, id });
  }

  async extended_card_skills() {
    return (await this.client.getAgentCard()).skills.map((skill) => skill.id);
  }

  typed(error) {
    const known = NAMES.find((name) => error.name?.includes(name) || error.constructor.name.includes(name));
    return { name: known ?? "untyped", seen: `${error.name}: ${error.message}` };
  }
}

drive(async (given) => {
  const legacyCompat = { enabled: given.version !== "any" };
  const card = await new DefaultAgentCardResolver({ legacyCompat }).resolve(`${given.url}/`);
  const fits = (one) => given.version === "any" || one.protocolVersion.startsWith(given.version);
  const wanted = card.supportedInterfaces.filter(
    (one) => fits(one) && ["any", one.protocolBinding].includes(given.binding),
  );
  if (!wanted.length) throw new Error(`the card has no ${given.version} ${given.binding} interface`);
  for (const one of wanted) one.url = routed(one.url);
  card.supportedInterfaces = wanted;
  if (given.version === "any") return new Driver(await new ClientFactory().createFromAgentCard(card));
  const transports = [JsonRpcTransportFactory, RestTransportFactory, GrpcTransportFactory].map(
    (Factory) => new Factory({ legacyCompat }),
  );
  return new Driver(await new ClientFactory({ transports }).createFromAgentCard(card));
});
