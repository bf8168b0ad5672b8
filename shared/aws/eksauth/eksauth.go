// Package eksauth calls EKS Auth, which gives pods the credentials of their roles. On AWS, only the agent of pod identity calls it. make
// verify calls it in a local account, whose pods run no processes. It has one operation, so the package signs the request itself.
package eksauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// Result of an exchange.
type Result struct {
	Subject struct{ Namespace, ServiceAccount string }
	// Audience of the token.
	Audience               string
	PodIdentityAssociation struct{ AssociationARN, AssociationID string }
	AssumedRoleUser        struct{ ARN, AssumeRoleID string }
	Credentials            struct {
		AccessKeyID, SecretAccessKey, SessionToken string
		// Expiration in seconds since 1970.
		Expiration float64
	}
}

// maxAnswer is more than an answer can have.
const maxAnswer = 1 << 20

// AssumeRoleForPodIdentity exchanges the token of a pod for credentials of the role of its service account.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_auth_AssumeRoleForPodIdentity.html
func AssumeRoleForPodIdentity(ctx context.Context, cfg aws.Config, cluster, token string) (*Result, error) {
	base := "https://eks-auth." + cfg.Region + ".api.aws"
	if cfg.BaseEndpoint != nil {
		base = *cfg.BaseEndpoint
	}
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(base, "/") + "/clusters/" + url.PathEscape(cluster) + "/assume-role-for-pod-identity"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	credentials, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("signing a call of EKS Auth: %w", err)
	}
	hash := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(hash[:]), "eks-auth", cfg.Region, time.Now()); err != nil {
		return nil, fmt.Errorf("signing a call of EKS Auth: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("calling EKS Auth: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the answer of EKS Auth: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, failure(response, answer)
	}
	result := &Result{}
	if err := json.Unmarshal(answer, result); err != nil {
		return nil, fmt.Errorf("reading the answer of EKS Auth: %w", err)
	}
	return result, nil
}

// failure is an error of the API.
func failure(response *http.Response, answer []byte) error {
	var body struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer, &body) // an answer of another form has no code
	for _, code := range []string{response.Header.Get("X-Amzn-Errortype"), body.Code, body.Type} {
		code, _, _ = strings.Cut(code, ":")
		if code = code[strings.LastIndex(code, "#")+1:]; code != "" {
			return &smithy.GenericAPIError{Code: code, Message: body.Message}
		}
	}
	return fmt.Errorf("calling EKS Auth: %w", errors.New(response.Status))
}
