import { createHash, createPrivateKey, createPublicKey, randomBytes, webcrypto } from "node:crypto";

const YEAR = 365.25 * 24 * 3600 * 1000;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;

/** A new ECDSA P-256 key, PKCS#8 PEM. */
export const makeKey = async (): Promise<string> => {
  const pair = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", pair.privateKey));
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" }).export({
    format: "pem",
    type: "pkcs8",
  }) as string;
};

/** The public key of a private key or a certificate, SPKI DER. */
const spkiOf = (pem: string): Buffer => createPublicKey(pem).export({ format: "der", type: "spki" });

/** What clients and agents pin: SHA-256 of the SPKI, base64. */
export const pinOf = (pem: string): string => createHash("sha256").update(spkiOf(pem)).digest("base64");

/**
 * A self-signed certificate of the key. It starts ten years back and ends in thirty (rule 16): a clock that steps, or a
 * node whose clock is wrong, does not break it. Trust comes from the pin, so its names mean nothing.
 */
export const makeCertificate = async (keyPem: string, now: number = Date.now()): Promise<string> => {
  const x509 = await import("./x509.ts");
  const pkcs8 = createPrivateKey(keyPem).export({ format: "der", type: "pkcs8" });
  const privateKey = await webcrypto.subtle.importKey("pkcs8", pkcs8, ALGORITHM, false, ["sign"]);
  const publicKey = await webcrypto.subtle.importKey("spki", spkiOf(keyPem), ALGORITHM, true, ["verify"]);
  // A serial number is positive and not zero.
  const serial = randomBytes(16);
  serial[0] = (serial[0]! & 0x7f) | 0x40;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serial.toString("hex"),
      name: "CN=slipway",
      notBefore: new Date(now - 10 * YEAR),
      notAfter: new Date(now + 30 * YEAR),
      signingAlgorithm: SIGNING,
      keys: { privateKey, publicKey },
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "slipway" }]),
      ],
    },
    webcrypto as Parameters<typeof x509.X509CertificateGenerator.createSelfSigned>[1],
  );
  return `${certificate.toString("pem")}\n`;
};
