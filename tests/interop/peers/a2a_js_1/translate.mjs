// The bench's words <-> the objects of @a2a-js/sdk 1, which are those of the 1.0 proto.
import { Role, TaskState } from "@a2a-js/sdk";

const CASES = ["text", "raw", "url", "data"];

export function partOut(part) {
  const $case = CASES.find((name) => name in part);
  const value = $case === "raw" ? Buffer.from(part.raw, "base64") : part[$case];
  return {
    content: { $case, value },
    metadata: part.metadata,
    filename: part.filename ?? "",
    mediaType: part.mediaType ?? "",
  };
}

export function partIn({ content, metadata, filename, mediaType }) {
  const value = content.$case === "raw" ? Buffer.from(content.value).toString("base64") : content.value;
  return {
    [content.$case]: value,
    ...(mediaType ? { mediaType } : {}),
    ...(filename ? { filename } : {}),
    ...(metadata && Object.keys(metadata).length ? { metadata } : {}),
  };
}

export const stateOut = (state) => TaskState[`TASK_STATE_${state.replace("-", "_").toUpperCase()}`];
export const stateIn = (state) => TaskState[state].replace("TASK_STATE_", "").replace("_", "-").toLowerCase();

export const textOf = (message) =>
  (message?.parts ?? []).map(({ content }) => (content?.$case === "text" ? content.value : "")).join("");

/** What an agent is told: the first part that is text. */
export const command = (message) => message.parts.find(({ content }) => content?.$case === "text")?.content.value ?? "";

export const messageOut = (messageId, role, parts, ids = {}) => ({
  messageId,
  contextId: ids.contextId ?? "",
  taskId: ids.taskId ?? "",
  role: Role[role],
  parts: parts.map(partOut),
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

const artifactIn = (artifact) => ({
  id: artifact.artifactId,
  parts: artifact.parts.map(partIn),
  name: artifact.name ?? "",
});

export const taskIn = (task) => ({
  kind: "task",
  id: task.id,
  context_id: task.contextId,
  state: stateIn(task.status.state),
  artifacts: (task.artifacts ?? []).map(artifactIn),
  status_text: textOf(task.status.message),
  history_text: (task.history ?? [])
    .filter(({ role }) => role === Role.ROLE_AGENT)
    .map(textOf)
    .join(""),
});

export const messageIn = (message) => ({ kind: "message", parts: message.parts.map(partIn) });

export function eventIn({ payload }) {
  switch (payload?.$case) {
    case "task":
      return taskIn(payload.value);
    case "message":
      return messageIn(payload.value);
    case "statusUpdate": {
      const { taskId, status } = payload.value;
      return { kind: "status", task_id: taskId, state: stateIn(status.state), text: textOf(status.message) };
    }
    case "artifactUpdate": {
      const { taskId, artifact, append, lastChunk } = payload.value;
      return { kind: "artifact", task_id: taskId, artifact: artifactIn(artifact), append, last: lastChunk };
    }
  }
  throw new TypeError(`an event with no content: ${JSON.stringify(payload)}`);
}

export const pushOut = ({ id, url, token }, taskId = "") => ({
  tenant: "",
  id,
  taskId,
  url,
  token,
  authentication: undefined,
});
export const pushIn = ({ id, url, token }) => ({ id: id ?? "", url, token: token ?? "" });
