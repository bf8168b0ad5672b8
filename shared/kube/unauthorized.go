package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsDenied reports whether a cluster refused the caller, who has no access entry or one that is not sufficient.
func IsDenied(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// WithRole names the role that signs in, so that the errors of API servers that refuse it contain the commands that restore its access.
// group is the Kubernetes group of its access entry. An administrator has none.
func WithRole(arn, group string) Option {
	return func(c *Clusters) { c.role, c.group = arn, group }
}

// explainer adds to an API server's answer 401 what an operator can do. EKS gives no reason: "If you … recreate the IAM principal, even if
// it has the same ARN, the access entry won't work".
// https://docs.aws.amazon.com/eks/latest/APIReference/API_AccessEntry.html
type explainer struct {
	next    http.RoundTripper
	message string
}

// RoundTrip makes a call.
func (e explainer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	_ = response.Body.Close() // it says "Unauthorized"
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized, Message: e.message,
	})
	if err != nil {
		return nil, err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Type", "application/json")
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return response, nil
}

// unauthorizedMessage is the message for a role that an EKS cluster refuses.
func unauthorizedMessage(eksCluster, role, group string) string {
	entry := fmt.Sprintf("--cluster-name %s --principal-arn %s", eksCluster, role)
	if group != "" {
		return fmt.Sprintf("Unauthorized: the access entry of %s is missing, or the role was recreated: if this lasts, run "+
			"aws eks delete-access-entry %s; aws eks create-access-entry %s --kubernetes-groups %s", role, entry, entry, group)
	}
	return fmt.Sprintf("Unauthorized: the access entry of %s is missing, or the role was recreated: if this lasts, run "+
		"aws eks delete-access-entry %s; aws eks create-access-entry %s && aws eks associate-access-policy %s "+
		"--access-scope type=cluster --policy-arn arn:%s:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
		role, entry, entry, entry, strings.Split(role, ":")[1])
}
