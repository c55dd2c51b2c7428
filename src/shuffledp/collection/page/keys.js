// Public keys that protect nothing: points of small order, in every encoding, as in collection/small_order.py.
const P = 2n ** 255n - 19n;
const X25519 = [
  0n,
  1n,
  P - 1n,
  325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
];
const ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022n;
const ED25519 = [0n, 1n, P - 1n, ORDER_8, P - ORDER_8];

// The coordinate that 32 bytes stand for: the highest bit does not belong to it, and it counts modulo P.
const coordinate = (key) => (key.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n) & (2n ** 255n - 1n)) % P;

// Whether what is sealed to this X25519 key is sealed to nobody.
export const opensToAnybody = (key) => X25519.includes(coordinate(key));

// Whether anybody can sign under this Ed25519 key.
export const signsForAnybody = (identity) => ED25519.includes(coordinate(identity));
