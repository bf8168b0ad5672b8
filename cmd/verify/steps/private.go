package steps

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/drover-run/drover/cmd/verify/runner"
	"github.com/drover-run/drover/shared/kube"
	"github.com/drover-run/drover/shared/names"
)

// private creates a cluster whose endpoint is reachable only from its network, and reads a node through the cluster's relay.
func (t *Target) private(ctx context.Context, log *runner.Log) error {
	cluster := t.privateOne().name
	if err := t.create(ctx, log, t.privateOne()); err != nil {
		return err
	}
	out, err := eks.NewFromConfig(t.cfg).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(names.EKSCluster(cluster))})
	if err != nil {
		return err
	}
	if out.Cluster.ResourcesVpcConfig.EndpointPublicAccess {
		return errors.New("the endpoint of the private cluster is public")
	}
	if err := unreachable(ctx, aws.ToString(out.Cluster.Endpoint)); err != nil {
		return err
	}
	log.Found("EKS reports the endpoint as private, and this machine cannot connect to it")
	log.Found("the next line comes through the relay function %s", names.Relay(cluster))
	return t.nodeReady(ctx, log, cluster)
}

// unreachable fails if this machine gets an answer from an endpoint. It sends no token, so the authority need not be verified.
func unreachable(ctx context.Context, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/version", nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return nil
	}
	return errors.Join(response.Body.Close(), errors.New("the private endpoint answers this machine: run make verify outside its network"))
}
