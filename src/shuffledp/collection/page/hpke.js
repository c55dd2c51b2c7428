// HPKE base mode of RFC 9180: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, one message a context.
// With `signedBy` and `sha256` below, the only cryptography of the page; all of it is WebCrypto's.
import { signsForAnybody } from "./keys.js";

const subtle = globalThis.crypto?.subtle; // undefined where the page was not loaded over https
const text = new TextEncoder();
const none = new Uint8Array(0);
const X25519 = { name: "X25519" };
const KEM = Uint8Array.of(...text.encode("KEM"), 0x00, 0x20);
const SUITE = Uint8Array.of(...text.encode("HPKE"), 0x00, 0x20, 0x00, 0x01, 0x00, 0x01);

export const SEALED_OVERHEAD = 32 + 16; // the encapsulated key and the tag

export function join(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

async function hmac(key, ...data) {
  // HMAC pads its key with zeros, so RFC 5869's empty salt is 32 zero bytes; WebCrypto refuses an empty key.
  const padded = key.length ? key : new Uint8Array(32);
  const imported = await subtle.importKey("raw", padded, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, join(...data)));
}

const labelAfter = (suite, name) => join(text.encode("HPKE-v1"), suite, text.encode(name));
const extract = (suite, salt, name, secret) => hmac(salt, labelAfter(suite, name), secret);

// LabeledExpand for at most 32 bytes: one block of RFC 5869.
async function expand(suite, key, name, info, length) {
  const block = await hmac(key, Uint8Array.of(0, length), labelAfter(suite, name), info, Uint8Array.of(1));
  return block.slice(0, length);
}

const rawKey = async (key) => new Uint8Array(await subtle.exportKey("raw", key));
const readPublic = (bytes) => subtle.importKey("raw", bytes, X25519, true, []);

// The AES key and nonce both sides derive (RFC 9180, sections 4.1 and 5.1). An all-zero shared point is refused
// by deriveBits itself.
async function context(privateKey, theirPublic, enc, recipient, info) {
  const point = new Uint8Array(await subtle.deriveBits({ name: "X25519", public: theirPublic }, privateKey, 256));
  const mixed = await extract(KEM, none, "eae_prk", point);
  const shared = await expand(KEM, mixed, "shared_secret", join(enc, recipient), 32);
  const bound = join(
    Uint8Array.of(0), // mode_base
    await extract(SUITE, none, "psk_id_hash", none),
    await extract(SUITE, none, "info_hash", info),
  );
  const secret = await extract(SUITE, shared, "secret", none);
  const key = await subtle.importKey("raw", await expand(SUITE, secret, "key", bound, 16), "AES-GCM", false, ["encrypt", "decrypt"]);
  return { key, iv: await expand(SUITE, secret, "base_nonce", bound, 12) };
}

// A fresh key pair for one message; its private half cannot be exported.
export const ephemeralKeys = async () => subtle.generateKey(X25519, false, ["deriveBits"]);

// enc (32 bytes), ciphertext and tag of `message` for the holder of `recipient` (32 bytes).
export async function seal(recipient, info, message, { aad = none, keys = null } = {}) {
  const ephemeral = keys ?? (await ephemeralKeys());
  const enc = await rawKey(ephemeral.publicKey);
  const { key, iv } = await context(ephemeral.privateKey, await readPublic(recipient), enc, recipient, info);
  return join(enc, new Uint8Array(await subtle.encrypt({ name: "AES-GCM", iv, additionalData: aad }, key, message)));
}

// The message sealed in `sealed`; throws where a bit of it, of info or of aad differs.
export async function open(keys, info, sealed, aad = none) {
  const enc = sealed.slice(0, 32);
  const { key, iv } = await context(keys.privateKey, await readPublic(enc), enc, await rawKey(keys.publicKey), info);
  return new Uint8Array(await subtle.decrypt({ name: "AES-GCM", iv, additionalData: aad }, key, sealed.slice(32)));
}

export const sha256 = async (bytes) => new Uint8Array(await subtle.digest("SHA-256", bytes));

// True or false; null where this browser knows no Ed25519. False for a key under which anybody signs.
export async function signedBy(identity, signature, message) {
  let key;
  try {
    key = await subtle.importKey("raw", identity, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (error.name === "NotSupportedError") return null;
    return false;
  }
  return !signsForAnybody(identity) && subtle.verify({ name: "Ed25519" }, key, signature, message);
}

// Whether this browser can seal: WebCrypto with X25519.
export const canSeal = () => ephemeralKeys().then(() => true, () => false);
