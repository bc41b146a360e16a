// oxlint-disable-next-line import/no-unassigned-import -- it adds to Reflect what the library looks for there
import "reflect-metadata";

/** Loaded only where a certificate is made: the library is large and a home needs it once. */
export {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
