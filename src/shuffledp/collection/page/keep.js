// What this device keeps, in IndexedDB: one record for each person and task, {slot, id, organizer, epsilon0, promise,
// delta, date, level, state, sealed}. It is at once the outbox (state "waiting", with the sealed bytes) and the ledger.
//
// state: "level"    the level is fixed, nothing drawn yet
//        "waiting"  drawn and sealed; the bytes are kept and sent again until there is a clear answer
//        "held", "refused", "unclear"   done, the bytes deleted; `reason` says why a report was refused
// A report whose code was refused keeps `inners`, what was drawn, so that another code never means another draw.
const STORE = "people";

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function openDatabase() {
  const request = indexedDB.open("shuffledp", 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "slot" });
  return done(request);
}

// {lasting, all, update, move}; where the browser keeps nothing, `lasting` is false and the memory of this page is used.
export async function openKeep() {
  try {
    return overDatabase(await openDatabase());
  } catch {
    return overMemory();
  }
}

function overDatabase(database) {
  return {
    lasting: true,
    all: () => done(database.transaction(STORE).objectStore(STORE).getAll()),
    // Replaces the record of `slot` by change(record), in one transaction that is on disk when the promise resolves;
    // leaves it where change returns undefined. Resolves to the record as it then is.
    update: (slot, change) => changed(database, slot, change),
    // The same by change(record, the record of `from`), and `from` is deleted where change returns a record.
    move: (from, slot, change) => changed(database, slot, change, from),
  };
}

function changed(database, slot, change, from = null) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
    const store = transaction.objectStore(STORE);
    let kept;
    const write = (before, moved) => {
      const after = change(before, moved);
      if (after) store.put({ ...after, slot });
      if (after && from !== null) store.delete(from);
      kept = after ? { ...after, slot } : before;
    };
    store.get(slot).onsuccess = ({ target: { result: before } }) => {
      if (from === null) write(before);
      else store.get(from).onsuccess = ({ target }) => write(before, target.result);
    };
    transaction.oncomplete = () => resolve(kept);
    transaction.onabort = () => reject(transaction.error);
  });
}

export function overMemory() {
  const records = new Map();
  const update = async (slot, change, from = null) => {
    const after = change(records.get(slot), records.get(from));
    if (after) records.set(slot, { ...after, slot });
    if (after && from !== null) records.delete(from);
    return records.get(slot);
  };
  return { lasting: false, all: async () => [...records.values()], update, move: (from, slot, change) => update(slot, change, from) };
}
