package events

// RelayRequest is a request to a cluster's API server, as the payload of the cluster's relay function.
type RelayRequest struct {
	Method string `json:"method"`
	// Path has the query. The relay knows scheme and host.
	Path   string              `json:"path"`
	Header map[string][]string `json:"header,omitempty"`
	Body   []byte              `json:"body,omitempty"`
}

// RelayResponse is the first line of a relay's response. If it has no error, the bytes of the body follow.
type RelayResponse struct {
	Status int                 `json:"status,omitempty"`
	Header map[string][]string `json:"header,omitempty"`
	// Error says why the API server did not answer. The API server's own errors have a status.
	Error *RelayError `json:"error,omitempty"`
}

// RelayError is an error of the relay itself.
type RelayError struct {
	Reason  RelayReason `json:"reason"`
	Message string      `json:"message"`
}

// RelayReason says what kept a relay from forwarding a request.
type RelayReason string

const (
	// RelayRefused: the relay does not forward such a request.
	RelayRefused RelayReason = "Refused"
	// RelayUnreachable: no connection to the API server.
	RelayUnreachable RelayReason = "Unreachable"
	// RelayUntrusted: the server at the endpoint has no certificate of the cluster's authority.
	RelayUntrusted RelayReason = "Untrusted"
	// RelayTimeout: the API server did not answer in time.
	RelayTimeout RelayReason = "Timeout"
)
