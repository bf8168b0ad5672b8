package harness

// A role that is deleted and created again outside drover.

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/drover-run/drover/local/aws/iam"
)

// RecreateRole deletes the role of a function and creates it again with the same policies. The function uses the new role at once. From
// then on API servers check tokens: the access entries of the old role do not work.
func (a *Account) RecreateRole(step string) {
	a.t.Helper()
	name := RoleARN(step)[strings.LastIndex(RoleARN(step), "/")+1:]
	role, err := a.Identities.Role(name)
	require.NoError(a.t, err)
	for policy := range role.Inline {
		require.NoError(a.t, a.Identities.DeleteRolePolicy(name, policy))
	}
	for _, policy := range role.Attached {
		require.NoError(a.t, a.Identities.DetachRolePolicy(name, policy))
	}
	require.NoError(a.t, a.Identities.DeleteRole(name))
	require.NoError(a.t, a.Identities.Load(iam.Definitions{Roles: map[string]iam.RoleDefinition{name: a.definitions.Roles[name]}}))
	a.Functions.renew(step)
	a.CheckTokens()
}

// CheckTokens makes API servers check the tokens of all functions from now on, as those of EKS always do. Call it before access entries
// change outside drover.
func (a *Account) CheckTokens() { a.authenticates.Store(true) }

// renew makes a function use new credentials.
func (f *Functions) renew(step string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, session := range f.sessions[step] {
		session.Invalidate()
	}
}

// refuse returns the answer of a cluster's API server to a call whose token has no access; nil if it has.
func (a *Account) refuse(eksCluster string, r *http.Request) *http.Response {
	if !a.authenticates.Load() {
		return nil
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if a.EKS.Authenticate(r.Context(), eksCluster, token) == nil {
		return nil
	}
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`
	return &http.Response{
		StatusCode: http.StatusUnauthorized, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body))),
		ContentLength: int64(len(body)),
	}
}
