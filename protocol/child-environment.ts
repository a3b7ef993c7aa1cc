/**
 * Names a PEM file of further certificate authorities to a child, as NODE_EXTRA_CA_CERTS does to any
 * program on Node. Set by the supervisor alone.
 */
export const EXTRA_AUTHORITIES_VARIABLE = 'AGENTD_EXTRA_CA_CERTS';
