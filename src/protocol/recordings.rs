//! What a PostgreSQL 15.18 server really sent, byte for byte: replies to logins and to statements.

pub(super) const CLEARTEXT: &[u8] = b"\
    R\0\0\0\x08\0\0\0\x03R\0\0\0\x08\0\0\0\0S\0\0\0\x1capplication_name\0pgmark\0S\0\0\0\x19\
    client_encoding\0UTF8\0S\0\0\0\x17DateStyle\0ISO, MDY\0S\0\0\0&default_transaction_read_\
    only\0off\0S\0\0\0\x17in_hot_standby\0off\0S\0\0\0\x19integer_datetimes\0on\0S\0\0\0\x1b\
    IntervalStyle\0postgres\0S\0\0\0\x15is_superuser\0off\0S\0\0\0\x19server_encoding\0UTF8\
    \0S\0\0\x002server_version\x0015.18 (Debian 15.18-0+deb12u1)\0S\0\0\0 session_authorization\
    \0clear\0S\0\0\0#standard_conforming_strings\0on\0S\0\0\0\x15TimeZone\0Etc/UTC\0K\0\0\0\
    \x0c\0\0&0\x1aGT\x89Z\0\0\0\x05I";

pub(super) const CLEARTEXT_WRONG: &[u8] = b"\
    R\0\0\0\x08\0\0\0\x03E\0\0\0eSFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for\
    \x20user \"clear\"\0Fauth.c\0L334\0Rauth_failed\0\0";

pub(super) const MD5: &[u8] = b"\
    R\0\0\0\x0c\0\0\0\x05v\xe9)\xdeR\0\0\0\x08\0\0\0\0S\0\0\0\x1capplication_name\0pgmark\0S\
    \0\0\0\x19client_encoding\0UTF8\0S\0\0\0\x17DateStyle\0ISO, MDY\0S\0\0\0&default_transac\
    tion_read_only\0off\0S\0\0\0\x17in_hot_standby\0off\0S\0\0\0\x19integer_datetimes\0on\0S\
    \0\0\0\x1bIntervalStyle\0postgres\0S\0\0\0\x15is_superuser\0off\0S\0\0\0\x19server_encod\
    ing\0UTF8\0S\0\0\x002server_version\x0015.18 (Debian 15.18-0+deb12u1)\0S\0\0\0!session_autho\
    rization\0mdfive\0S\0\0\0#standard_conforming_strings\0on\0S\0\0\0\x15TimeZone\0Etc/UTC\
    \0K\0\0\0\x0c\0\0&3&\xda\x17zZ\0\0\0\x05I";

pub(super) const REJECTED: &[u8] = b"\
    E\0\0\0\xa3SFATAL\0VFATAL\0C28000\0Mpg_hba.conf rejects connection for host \"[local]\",\
    \x20user \"nobody\", database \"postgres\", no encryption\0Fauth.c\0L476\0RClientAuthentica\
    tion\0\0";

pub(super) const NO_DATABASE: &[u8] = b"\
    R\0\0\0\x08\0\0\0\0E\0\0\0\\SFATAL\0VFATAL\0C3D000\0Mdatabase \"nowhere\" does not exist\
    \0Fpostinit.c\0L948\0RInitPostgres\0\0";

pub(super) const TRUST: &[u8] = b"\
    R\0\0\0\x08\0\0\0\0S\0\0\0\x1capplication_name\0pgmark\0S\0\0\0\x19client_encoding\0UTF8\
    \0S\0\0\0\x17DateStyle\0ISO, MDY\0S\0\0\0&default_transaction_read_only\0off\0S\0\0\0\
    \x17in_hot_standby\0off\0S\0\0\0\x19integer_datetimes\0on\0S\0\0\0\x1bIntervalStyle\0pos\
    tgres\0S\0\0\0\x15is_superuser\0off\0S\0\0\0\x19server_encoding\0UTF8\0S\0\0\x002server_ve\
    rsion\x0015.18 (Debian 15.18-0+deb12u1)\0S\0\0\0!session_authorization\0trusty\0S\0\0\0#st\
    andard_conforming_strings\0on\0S\0\0\0\x15TimeZone\0Etc/UTC\0K\0\0\0\x0c\0\0&9\xfd\x94\
    \x8b\xffZ\0\0\0\x05I";

pub(super) const RESULTS: &[u8] = b"\
    T\0\0\0M\0\x03one\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0nothing\0\0\0\0\0\0\0\
    \0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0text\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\
    \xff\0\0D\0\0\0\x15\0\x03\0\0\0\x011\xff\xff\xff\xff\0\0\0\x02\xc3\xa9C\0\0\0\rSELECT 1\
    \0C\0\0\0\x11CREATE TABLE\0C\0\0\0\x0fINSERT 0 2\0T\0\0\0\x1a\0\x01a\0\0\0@\x07\0\x01\0\
    \0\0\x17\0\x04\xff\xff\xff\xff\0\0D\0\0\0\x0b\0\x01\0\0\0\x011D\0\0\0\x0b\0\x01\0\0\0\
    \x012C\0\0\0\rSELECT 2\0Z\0\0\0\x05I";

pub(super) const EMPTY: &[u8] = b"\
    I\0\0\0\x04Z\0\0\0\x05I";

pub(super) const DIVISION_BY_ZERO: &[u8] = b"\
    E\0\0\0ASERROR\0VERROR\0C22012\0Mdivision by zero\0Fint.c\0L869\0Rint4div\0\0Z\0\0\0\x05\
    I";

pub(super) const SYNTAX_ERROR: &[u8] = b"\
    E\0\0\0^SERROR\0VERROR\0C42601\0Msyntax error at or near \"selec\"\0P18\0Fscan.l\0L1188\
    \0Rscanner_yyerror\0\0Z\0\0\0\x05I";

pub(super) const ROLLBACK_WARNING: &[u8] = b"\
    N\0\0\0lSWARNING\0VWARNING\0C25P01\0Mthere is no transaction in progress\0Fxact.c\0L4110\
    \0RUserAbortTransactionBlock\0\0C\0\0\0\rROLLBACK\0Z\0\0\0\x05I";

pub(super) const NOTICE: &[u8] = b"\
    N\0\0\0}SNOTICE\0VNOTICE\0C00000\0Mhi\0Dd\0Hh\0WPL/pgSQL function inline_code_block line\
    \x201 at RAISE\0Fpl_exec.c\0L3891\0Rexec_stmt_raise\0\0C\0\0\0\x07DO\0Z\0\0\0\x05I";

pub(super) const NOTIFY: &[u8] = b"\
    C\0\0\0\x0bLISTEN\0C\0\0\0\x0bNOTIFY\0A\0\0\0\x12\0\0&9c\0payload\0Z\0\0\0\x05I";

pub(super) const SETTINGS: &[u8] = b"\
    C\0\0\0\x08SET\0C\0\0\0\x08SET\0S\0\0\0\x17application_name\0x\0S\0\0\0\x1bclient_encodi\
    ng\0LATIN1\0Z\0\0\0\x05I";

pub(super) const COPY_IN: &[u8] = b"\
    G\0\0\0\t\0\0\x01\0\0E\0\0\0\x8cSERROR\0VERROR\0C57014\0MCOPY from stdin failed: COPY fr\
    om the client is not supported\0WCOPY t, line 1\0Fcopyfromparse.c\0L315\0RCopyGetData\0\
    \0Z\0\0\0\x05I";

pub(super) const COPY_OUT: &[u8] = b"\
    H\0\0\0\t\0\0\x01\0\0d\0\0\0\x061\nd\0\0\0\x062\nc\0\0\0\x04C\0\0\0\x0bCOPY 2\0Z\0\0\0\
    \x05I";

pub(super) const COPY_IN_BETWEEN: &[u8] = b"\
    T\0\0\0!\0\x01?column?\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0D\0\0\0\x0b\0\
    \x01\0\0\0\x011C\0\0\0\rSELECT 1\0G\0\0\0\t\0\0\x01\0\0E\0\0\0\x8cSERROR\0VERROR\0C57014\
    \0MCOPY from stdin failed: COPY from the client is not supported\0WCOPY t, line 1\0Fcopy\
    fromparse.c\0L315\0RCopyGetData\0\0Z\0\0\0\x05I";

pub(super) const EXTENDED: &[u8] = b"\
    1\0\0\0\x042\0\0\0\x04T\0\0\0.\0\x02a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0b\
    \0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0D\0\0\0\x10\0\x02\0\0\0\x0242\xff\
    \xff\xff\xffC\0\0\0\rSELECT 1\0Z\0\0\0\x05I";

pub(super) const PREPARED: &[u8] = b"\
    1\0\0\0\x04Z\0\0\0\x05I2\0\0\0\x04n\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I3\0\0\0\
    \x04Z\0\0\0\x05I";

pub(super) const PIPELINE_WITH_ERROR: &[u8] = b"\
    1\0\0\0\x042\0\0\0\x04T\0\0\0\x1a\0\x01q\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\
    \0D\0\0\0\x0b\0\x01\0\0\0\x016C\0\0\0\rSELECT 1\x001\0\0\0\x04E\0\0\0ASERROR\0VERROR\0C220\
    12\0Mdivision by zero\0Fint.c\0L869\0Rint4div\0\0Z\0\0\0\x05I1\0\0\0\x042\0\0\0\x04T\0\0\
    \0!\0\x01?column?\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0D\0\0\0\x0b\0\x01\0\0\
    \0\x015C\0\0\0\rSELECT 1\0Z\0\0\0\x05I";

pub(super) const EXTENDED_COPY_IN: &[u8] = b"\
    1\0\0\0\x042\0\0\0\x04n\0\0\0\x04G\0\0\0\t\0\0\x01\0\0E\0\0\0\x8cSERROR\0VERROR\0C57014\
    \0MCOPY from stdin failed: COPY from the client is not supported\0WCOPY t, line 1\0Fcopy\
    fromparse.c\0L315\0RCopyGetData\0\0Z\0\0\0\x05I";

pub(super) const TERMINATED: &[u8] = b"\
    T\0\0\0-\0\x01pg_terminate_backend\0\0\0\0\0\0\0\0\0\0\x10\0\x01\xff\xff\xff\xff\0\0D\0\
    \0\0\x0b\0\x01\0\0\0\x01tE\0\0\0tSFATAL\0VFATAL\0C57P01\0Mterminating connection due to \
    administrator command\0Fpostgres.c\0L3211\0RProcessInterrupts\0\0";
