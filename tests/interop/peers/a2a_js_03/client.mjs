// The client of @a2a-js/sdk 0.3 as a driver of the bench.
import { randomUUID } from "node:crypto";
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver } from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import { Unavailable, drive, routed } from "./driver.mjs";
import { eventIn, partOut, pushIn, pushOut, taskIn } from "./translate.mjs";

const NAMES = ["TaskNotFound", "TaskNotCancelable", "PushNotificationNotSupported", "UnsupportedOperation"];

class Driver {
  constructor(client) {
    this.client = client;
  }

  #params(outgoing) {
    const { task_id, context_id, wait, push } = outgoing;
    return {
      message: {
        kind: "message",
        messageId: randomUUID(),
        role: "user",
        parts: outgoing.parts.map(partOut),
        ...(task_id ? { taskId: task_id } : {}),
        ...(context_id ? { contextId: context_id } : {}),
      },
      configuration: { blocking: wait, ...(push ? { pushNotificationConfig: pushOut(push) } : {}) },
    };
  }

  async send(outgoing) {
    return eventIn(await this.client.sendMessage(this.#params(outgoing)));
  }

  async *stream(outgoing) {
    for await (const event of this.client.sendMessageStream(this.#params(outgoing))) yield eventIn(event);
  }

  async get(id) {
    return taskIn(await this.client.getTask({ id }));
  }

  async cancel(id) {
    return taskIn(await this.client.cancelTask({ id }));
  }

  async *subscribe(id) {
    for await (const event of this.client.resubscribeTask({ id })) yield eventIn(event);
  }

  list() {
    throw new Unavailable("0.3 has no ListTasks");
  }

  async push_create(taskId, config) {
    return pushIn(await this.client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: pushOut(config) }));
  }

  async push_get(id, pushNotificationConfigId) {
    return pushIn(await this.client.getTaskPushNotificationConfig({ id, pushNotificationConfigId }));
  }

  async push_list(id) {
    return (await this.client.listTaskPushNotificationConfig({ id })).map(pushIn);
  }

  async push_delete(id, pushNotificationConfigId) {
    await this.client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId });
  }

  async extended_card_skills() {
    return (await this.client.getAgentCard()).skills.map((skill) => skill.id);
  }

  typed(error) {
    const name = error.constructor.name.replace(/(JSONRPC)?Error$/, "");
    return { name: NAMES.includes(name) ? name : "untyped", seen: `${error.constructor.name}: ${error.message}` };
  }
}

drive(async (given) => {
  const card = await new DefaultAgentCardResolver().resolve(`${given.url}/`);
  card.url = routed(card.url);
  for (const one of card.additionalInterfaces ?? []) one.url = routed(one.url);
  if (given.binding === "any") return new Driver(await new ClientFactory().createFromAgentCard(card));
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new GrpcTransportFactory()],
    preferredTransports: [given.binding],
  });
  const client = await new ClientFactory(options).createFromAgentCard(card);
  return new Driver(client);
});
