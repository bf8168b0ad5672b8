package api

// The proxy of a pool's nodes, and the certificates that they trust.

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateProxy checks that nodes reach their own network without the proxy. drover knows the ranges of a VPC that it creates.
func validateProxy(path *field.Path, p *Proxy, n *Network) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	isRange := func(text string) bool { _, err := netip.ParsePrefix(text); return err == nil }
	if n.Existing != nil && !slices.ContainsFunc(p.NoProxy, isRange) {
		errs = append(errs, field.Required(path.Child("noProxy"), "drover does not read the ranges of the VPC of spec.network.existing, "+
			"which nodes must reach without the proxy: list them, such as 10.0.0.0/16"))
	}
	for i, text := range p.NoProxy {
		if strings.Contains(text, "/") && len(formats["no-proxy"].Wrong(text)) == 0 && !isRange(text) {
			errs = append(errs, field.Invalid(path.Child("noProxy").Index(i), text, "must be "+ipv4Range))
		}
	}
	return errs
}

// certificates reports what in a bundle is no certificate.
func certificates(bundle string) []string {
	list, err := parseBundle(bundle)
	switch {
	case err != nil:
		return []string{err.Error()}
	case len(list) == 0:
		return []string{`must be certificates in PEM, such as "-----BEGIN CERTIFICATE-----"`}
	}
	return nil
}

// parseBundle parses certificates in PEM. Text between them is a comment, as in the files of a trust store.
func parseBundle(bundle string) (list []*x509.Certificate, err error) {
	for rest := []byte(bundle); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if strings.Contains(string(rest), "-----BEGIN") {
				return nil, fmt.Errorf("part %d is no valid PEM: copy it again, whole", len(list)+1)
			}
			return list, nil
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("part %d is a %s: must be certificates only, because every process on the node can read them", len(list)+1,
				block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("part %d is no certificate (%w): copy it again, whole", len(list)+1, err)
		}
		list = append(list, certificate)
	}
}

// Certificates returns the certificates of CABundle in PEM, without the text between them, or "". A line of such text must not reach a
// node: it could end the part of the user data that holds the certificates.
func (p *Pool) Certificates() (string, error) {
	if p.CABundle == "" {
		return "", nil
	}
	list, err := parseBundle(p.CABundle)
	if err == nil && len(list) == 0 {
		err = errors.New("it has no certificate")
	}
	var bundle strings.Builder
	for _, c := range list {
		bundle.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return bundle.String(), err
}

// validateBundle rejects expired certificates, at an upload only: a spec that was accepted stays valid.
func validateBundle(path *field.Path, bundle string, now time.Time) (errs field.ErrorList) {
	if bundle == "" || now.IsZero() {
		return nil
	}
	list, err := parseBundle(bundle)
	if err != nil { // reported as a format
		return nil
	}
	for i, c := range list {
		if c.NotAfter.Before(now) {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("part %d, %q, expired on %s: remove or replace it", i+1, c.Subject,
				c.NotAfter.UTC().Format(time.DateOnly))))
		}
	}
	return errs
}
