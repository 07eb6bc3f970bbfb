// The bench's words <-> the objects of @a2a-js/sdk 0.3, which are those of the 0.3 JSON.

const about = (part) => ({
  ...(part.mediaType ? { mimeType: part.mediaType } : {}),
  ...(part.filename ? { name: part.filename } : {}),
});
const metadata = (part) => (part.metadata && Object.keys(part.metadata).length ? { metadata: part.metadata } : {});

export function partOut(part) {
  if ("text" in part) return { kind: "text", text: part.text, ...metadata(part) };
  if ("raw" in part) return { kind: "file", file: { bytes: part.raw, ...about(part) }, ...metadata(part) };
  if ("url" in part) return { kind: "file", file: { uri: part.url, ...about(part) }, ...metadata(part) };
  return { kind: "data", data: part.data, ...metadata(part) };
}

export function partIn(part) {
  if (part.kind === "text") return { text: part.text, ...metadata(part) };
  if (part.kind === "data") return { data: part.data, ...metadata(part) };
  const { file } = part;
  return {
    ...("uri" in file && file.uri ? { url: file.uri } : { raw: file.bytes }),
    ...(file.mimeType ? { mediaType: file.mimeType } : {}),
    ...(file.name ? { filename: file.name } : {}),
    ...metadata(part),
  };
}

export const textOf = (message) => (message?.parts ?? []).map((part) => part.text ?? "").join("");

/** What an agent is told: the first part that is text. */
export const command = (message) => message.parts.find((part) => part.kind === "text")?.text ?? "";

const artifactIn = (artifact) => ({
  id: artifact.artifactId,
  parts: artifact.parts.map(partIn),
  name: artifact.name ?? "",
});

export const taskIn = (task) => ({
  kind: "task",
  id: task.id,
  context_id: task.contextId,
  state: task.status.state,
  artifacts: (task.artifacts ?? []).map(artifactIn),
  status_text: textOf(task.status.message),
  history_text: (task.history ?? [])
    .filter(({ role }) => role === "agent")
    .map(textOf)
    .join(""),
});

export function eventIn(event) {
  switch (event.kind) {
    case "task":
      return taskIn(event);
    case "message":
      return { kind: "message", parts: event.parts.map(partIn) };
    case "status-update":
      return { kind: "status", task_id: event.taskId, state: event.status.state, text: textOf(event.status.message) };
    case "artifact-update":
      return {
        kind: "artifact",
        task_id: event.taskId,
        artifact: artifactIn(event.artifact),
        append: event.append ?? false,
        last: event.lastChunk ?? false,
      };
  }
  throw new TypeError(`not an event: ${JSON.stringify(event)}`);
}

export const pushOut = ({ id, url, token }) => ({ id, url, token });
export const pushIn = ({ pushNotificationConfig: { id, url, token } }) => ({ id: id ?? "", url, token: token ?? "" });
