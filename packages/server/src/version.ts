/** Version of this software, the same as in package.json. */
export const MEERKAT_VERSION = '0.1.0';

/** The ZooKeeper that we behave like; clients choose by it what they may ask for. */
export const ZOOKEEPER_VERSION = '3.9.5';

/** As `srvr` shows it. The date is that of the release, in ZooKeeper's form. */
export const FULL_VERSION: string = `${ZOOKEEPER_VERSION}-meerkat-${MEERKAT_VERSION}, built on 2026-11-21 00:00 UTC`;
