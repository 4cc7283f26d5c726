/** Certificate and key as PEM texts. */
export interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  /** The authority that must have signed the callers' certificates; null: callers need none. */
  readonly clientAuthority: string | null;
}

/** The source of a listener's certificate. */
export interface TlsSource {
  /** Whether the material has a `clientAuthority`; fixed during the life of a listener. */
  readonly asksForCertificate: boolean;
  /** Whether callers without a certificate may connect: then each route decides by `clientName`. */
  readonly isCertificateOptional?: boolean;
  /** Rejects if there is no valid pair. */
  read(): Promise<TlsMaterial>;
  /** Calls `use` with every valid pair that replaces the previous one, until `stop`. */
  follow(use: (material: TlsMaterial) => void): void;
  stop(): void;
}

/** A fixed certificate, or one that its owner renews at the listener. */
export function fixedTls({
  certificate,
  key,
  clientAuthority = null,
  isCertificateOptional = false,
}: Partial<TlsMaterial> & Omit<TlsMaterial, 'clientAuthority'> & Pick<TlsSource, 'isCertificateOptional'>): TlsSource {
  return {
    asksForCertificate: clientAuthority !== null,
    isCertificateOptional,
    read: async () => ({ certificate, key, clientAuthority }),
    follow: () => undefined,
    stop: () => undefined,
  };
}
