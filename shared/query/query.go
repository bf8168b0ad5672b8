// Package query speaks AWS's Query protocol, as far as EC2, Elastic Load Balancing and IAM need it: the SDK's client
// of EC2 alone would add two minutes to every build and many megabytes to a function.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html
package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"

	"github.com/drover-run/drover/shared/fault"
)

// API is one that speaks it.
type API struct{ Service, Version string }

// The APIs.
var (
	EC2   = &API{"ec2", "2016-11-15"}
	ELB   = &API{"elasticloadbalancing", "2012-06-01"}
	ELBv2 = &API{"elasticloadbalancing", "2015-12-01"}
	IAM   = &API{"iam", "2010-05-08"}
)

// answerLimit bounds what is read of an answer, in bytes: a thousand instances, which EC2 tells at once, are a tenth of it.
const answerLimit = 64 << 20

// Call makes one call, once: what passes is *fault.Throttled or *fault.Transient, and a machine tries it again. The
// answer's XML is read into out as it arrives, unless that is nil.
func (a *API) Call(ctx context.Context, config aws.Config, session aws.Credentials, action string, arguments map[string]string,
	out any) error {
	form := url.Values{"Action": {action}, "Version": {a.Version}}
	for name, value := range arguments {
		form.Set(name, value)
	}
	text := form.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.address(config), strings.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	sum := sha256.Sum256([]byte(text))
	if err := v4.NewSigner().SignHTTP(ctx, session, request, hex.EncodeToString(sum[:]), a.Service, a.region(config.Region),
		time.Now()); err != nil {
		return err
	}
	client := config.HTTPClient
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return &fault.Transient{Cause: fmt.Errorf("%s: %w", action, err)}
	}
	defer response.Body.Close()
	body := io.LimitReader(response.Body, answerLimit)
	if response.StatusCode != http.StatusOK {
		return fault.Classify(refusal(action, response.StatusCode, body))
	}
	if out == nil {
		return nil
	}
	if err := xml.NewDecoder(body).Decode(out); err != nil {
		return &fault.Transient{Cause: fmt.Errorf("reading the answer to %s: %w", action, err)}
	}
	return nil
}

// address of an API, in the region or wherever the SDK is told that it is.
func (a *API) address(config aws.Config) string {
	if config.BaseEndpoint != nil {
		return strings.TrimSuffix(*config.BaseEndpoint, "/") + "/"
	}
	region := a.region(config.Region)
	suffix := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		suffix += ".cn"
	}
	if host, of := global[region]; of && a == IAM {
		return "https://" + host + "/"
	}
	return fmt.Sprintf("https://%s.%s.%s/", a.Service, region, suffix)
}

// global are the hosts of IAM that have not their region in their name. https://docs.aws.amazon.com/general/latest/gr/iam-service.html
var global = map[string]string{"us-east-1": "iam.amazonaws.com", "us-gov-west-1": "iam.us-gov.amazonaws.com"}

// region that calls are signed for: of IAM there is one in each partition.
func (a *API) region(own string) string {
	switch {
	case a != IAM:
		return own
	case strings.HasPrefix(own, "cn-"):
		return "cn-north-1"
	case strings.HasPrefix(own, "us-gov-"):
		return "us-gov-west-1"
	}
	return "us-east-1"
}

// refused is an answer that is an error: what it is called and the status that it came with.
type refused struct {
	smithy.GenericAPIError
	status int
}

func (r *refused) HTTPStatusCode() int { return r.status }

// refusal reads an error: EC2 has it in Response/Errors, the others in ErrorResponse.
func refusal(action string, status int, answer io.Reader) error {
	type said struct{ Code, Message string }
	var body struct {
		Error  said
		Errors struct{ Error said }
	}
	out := &refused{status: status}
	if err := xml.NewDecoder(answer).Decode(&body); err == nil {
		out.Code, out.Message = body.Error.Code+body.Errors.Error.Code, body.Error.Message+body.Errors.Error.Message
	}
	if out.Code == "" {
		out.Code, out.Message = fmt.Sprintf("HTTP%d", status), "no error was told"
	}
	return fmt.Errorf("%s: %w", action, out)
}
