// The document for operators, which this bind has at /operations.

const PATIENCE = 8_000;

/** The document. Throws an Error that says what is wrong when the service does not answer with it. */
export async function read() {
  const response = await answered();
  const envelope = await response.json().catch(() => null);
  if (response.ok && envelope?.data) return envelope.data;
  throw new Error(`The service answers ${response.status}. ${envelope?.error?.message ?? ""}`);
}

async function answered() {
  try {
    return await fetch("operations", { signal: AbortSignal.timeout(PATIENCE) });
  } catch (error) {
    if (error.name !== "TimeoutError") throw new Error("The service does not answer.");
    throw new Error(`The service has not answered within ${PATIENCE / 1000} seconds.`);
  }
}
