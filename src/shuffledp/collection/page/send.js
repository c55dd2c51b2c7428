// The sealed bytes of a record on their way: sent until there is a clear answer, always the same bytes.

const REFUSALS = { 1: "unreadable", 2: "level", 3: "code" };
const CLOSED = 410;
const NOTHING_KEPT = [409, 503]; // not yet open; full, or cannot commit
export const RETRY = 30; // seconds, where the server names no time

// One attempt. Resolves to the record afterwards, and in how many seconds to try again if it is still waiting.
// `unsure` is set before the bytes leave and lifted only by an answer that nothing was kept: a report that the task
// closed upon while unsure may or may not be held, so it ends as "unclear" and counts as sent.
export async function attempt(keep, server, record, expires) {
  const wasUnsure = record.unsure ?? false;
  await keep.update(record.slot, (now) => (now?.sealed ? { ...now, unsure: true } : undefined));
  let response;
  let verdict = null;
  try {
    response = await fetch(`${server}/v1/${record.id}/reports`, {
      method: "POST",
      body: record.sealed,
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
    });
    if (response.status === 200) verdict = new Uint8Array(await response.arrayBuffer());
  } catch {
    response = null; // no connection, or it broke: whether the bytes arrived is unknown
  }
  const next = outcome(response?.status, verdict, wasUnsure, Date.now() > expires);
  const seconds = Number(response?.headers.get("Retry-After"));
  const kept = await keep.update(record.slot, (now) => now?.sealed && finished(now, next));
  return { record: kept, again: seconds > 0 ? Math.min(seconds, 3600) : RETRY };
}

function outcome(status, verdict, wasUnsure, expired) {
  if (status === 200 && verdict?.length === 1 && verdict[0] === 0) return { state: "held" };
  if (status === 200 && verdict?.length === 1 && REFUSALS[verdict[0]])
    return { state: "refused", reason: REFUSALS[verdict[0]] };
  if (status === CLOSED) return wasUnsure ? { state: "unclear" } : { state: "refused", reason: "closed" };
  if (expired) return { state: "unclear" };
  return { state: "waiting", unsure: wasUnsure || !NOTHING_KEPT.includes(status) };
}

// A clear answer ends the need for the bytes; the ledger line stays, and what was drawn where only the code was refused.
function finished(record, { state, reason, unsure: isUnsure }) {
  if (state === "waiting") return { ...record, unsure: isUnsure };
  const { sealed, inners, unsure, ...line } = record;
  return { ...line, state, ...(reason && { reason }), ...(reason === "code" && { inners }) };
}

// The report of `record`, whose code was refused, under another code: what was drawn stays, and `seal` seals it anew.
// Of two tabs that come here with two codes the first moves the report, and the second finds it: drawn once, one row.
export async function underAnotherCode(keep, record, slot, seal) {
  const sealed = await seal(record.inners);
  const first = record.first ?? record.slot;
  const moved = await keep.move(record.slot, slot, (now, from) => {
    if (now || from?.reason !== "code") return undefined;
    const { reason, ...before } = from;
    return { ...before, first, state: "waiting", sealed, unsure: false };
  });
  return moved ?? (await keep.all()).find((one) => (one.first ?? one.slot) === first) ?? null;
}
