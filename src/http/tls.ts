/** PEM texts. */
export interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  /** Callers have to show a certificate that this authority signed; null: they need none. */
  readonly clientAuthority: string | null;
}

/** Where a listener's certificate comes from. */
export interface TlsSource {
  /** Whether the material has a `clientAuthority`: that is decided for the life of a listener. */
  readonly asksForCertificate: boolean;
  /** Callers without a certificate are let in too: each route decides by `clientName`. */
  readonly isCertificateOptional?: boolean;
  /** Rejects where there is no usable pair. */
  read(): Promise<TlsMaterial>;
  /** Calls `use` with every usable pair that replaces the one before, until `stop`. */
  follow(use: (material: TlsMaterial) => void): void;
  stop(): void;
}

/** A certificate that stays, or that its owner renews at the listener. */
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
