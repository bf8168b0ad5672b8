// Package ec2 reads from EC2 what an account has and has room for: free addresses, images, instance types, running instances and volumes.
// It changes nothing.
package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/drover-run/drover/shared/names"
	"github.com/drover-run/drover/shared/preflight"
	"github.com/drover-run/drover/shared/query"
)

// Capacity of an account and region.
type Capacity struct{ config aws.Config }

// New returns the capacity of a configuration's account.
func New(config aws.Config) *Capacity { return &Capacity{config} }

// call calls an action of EC2 with the configuration's credentials.
func (c *Capacity) call(ctx context.Context, action string, arguments map[string]string, out any) error {
	if c.config.Credentials == nil {
		return errors.New("calling EC2: there are no credentials")
	}
	credentials, err := c.config.Credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("signing in to call EC2: %w", err)
	}
	return query.EC2.Call(ctx, c.config, credentials, action, arguments, out)
}

// maxFilterValues is how many values a filter of EC2 takes.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Filter.html
const maxFilterValues = 200

// filter of EC2. A filter leaves out ids that do not exist, where a request by id would fail.
type filter struct {
	name   string
	values []string
}

func arguments(filters ...filter) map[string]string {
	out := map[string]string{}
	for i, f := range filters {
		prefix := fmt.Sprintf("Filter.%d.", i+1)
		out[prefix+"Name"] = f.name
		for j, value := range f.values {
			out[prefix+"Value."+strconv.Itoa(j+1)] = value
		}
	}
	return out
}

// Subnets returns subnets by id, with their free addresses. Those that do not exist are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html
func (c *Capacity) Subnets(ctx context.Context, ids []string) (map[string]preflight.Subnet, error) {
	found := map[string]preflight.Subnet{}
	for some := range slices.Chunk(ids, maxFilterValues) {
		ask := arguments(filter{"subnet-id", some})
		var out struct {
			Items []struct {
				ID   string `xml:"subnetId"`
				Zone string `xml:"availabilityZone"`
				Free int    `xml:"availableIpAddressCount"`
			} `xml:"subnetSet>item"`
		}
		if err := c.call(ctx, "DescribeSubnets", ask, &out); err != nil {
			return nil, fmt.Errorf("describing subnets: %w", err)
		}
		for _, s := range out.Items {
			found[s.ID] = preflight.Subnet{ID: s.ID, Zone: s.Zone, Free: s.Free}
		}
	}
	return found, nil
}

// Images returns images by id. Those that do not exist, or are not shared with the account, are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html
func (c *Capacity) Images(ctx context.Context, ids []string) (map[string]preflight.Image, error) {
	found := map[string]preflight.Image{}
	for some := range slices.Chunk(ids, maxFilterValues) {
		ask := arguments(filter{"image-id", some})
		ask["IncludeDeprecated"] = "true" // instances can still be launched from them
		var out struct {
			Items []struct {
				ID           string `xml:"imageId"`
				Name         string `xml:"name"`
				Architecture string `xml:"architecture"`
				State        string `xml:"imageState"`
				Deprecated   string `xml:"deprecationTime"`
			} `xml:"imagesSet>item"`
		}
		if err := c.call(ctx, "DescribeImages", ask, &out); err != nil {
			return nil, fmt.Errorf("describing images: %w", err)
		}
		for _, i := range out.Items {
			image := preflight.Image{ID: i.ID, Name: i.Name, Architecture: i.Architecture, State: i.State}
			if at, err := time.Parse(time.RFC3339, i.Deprecated); err == nil {
				image.Deprecated = at
			}
			found[i.ID] = image
		}
	}
	return found, nil
}

// InstanceTypes returns instance types by name. Those that the region does not offer are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
func (c *Capacity) InstanceTypes(ctx context.Context, names []string) (map[string]preflight.InstanceType, error) {
	found := map[string]preflight.InstanceType{}
	for some := range slices.Chunk(names, maxFilterValues) {
		ask := arguments(filter{"instance-type", some})
		for {
			var out struct {
				Items []struct {
					Name      string `xml:"instanceType"`
					VCPUs     int    `xml:"vCpuInfo>defaultVCpus"`
					Addresses int    `xml:"networkInfo>ipv4AddressesPerInterface"`
				} `xml:"instanceTypeSet>item"`
				Next string `xml:"nextToken"`
			}
			if err := c.call(ctx, "DescribeInstanceTypes", ask, &out); err != nil {
				return nil, fmt.Errorf("describing instance types: %w", err)
			}
			for _, t := range out.Items {
				found[t.Name] = preflight.InstanceType{Name: t.Name, VCPUs: t.VCPUs, Addresses: t.Addresses}
			}
			if ask["NextToken"] = out.Next; out.Next == "" {
				break
			}
		}
	}
	return found, nil
}

// pageSize is the number of instances or volumes in one response: the maximum of EC2.
const pageSize = "1000"

// kind of instance, as quotas distinguish them.
type kind struct {
	name string
	spot bool
}

// Running returns the vCPUs of the account's pending and running instances in the region, by the code of their quota. It does not use
// CloudWatch (AWS/Usage), whose numbers are five minutes old.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) Running(ctx context.Context) (map[string]int, error) {
	instances, err := c.instances(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for k := range instances {
		names = append(names, k.name)
	}
	slices.Sort(names)
	types, err := c.InstanceTypes(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	running := map[string]int{}
	for k, n := range instances {
		if code := preflight.QuotaCode(k.name, k.spot); code != "" {
			running[code] += n * types[k.name].VCPUs
		}
	}
	return running, nil
}

// Volumes returns the GiB of the account's volumes of some types in the region, by the code of their quota. CloudWatch does not report
// their usage.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVolumes.html
func (c *Capacity) Volumes(ctx context.Context, types []string) (map[string]int, error) {
	used := map[string]int{}
	for some := range slices.Chunk(types, maxFilterValues) {
		ask := arguments(filter{"volume-type", some})
		ask["MaxResults"] = pageSize
		for {
			var out struct {
				Items []struct {
					Type string `xml:"volumeType"`
					GiB  int    `xml:"size"`
				} `xml:"volumeSet>item"`
				Next string `xml:"nextToken"`
			}
			if err := c.call(ctx, "DescribeVolumes", ask, &out); err != nil {
				return nil, fmt.Errorf("describing volumes: %w", err)
			}
			for _, v := range out.Items {
				used[preflight.VolumeQuotaCode(v.Type)] += v.GiB
			}
			if ask["NextToken"] = out.Next; out.Next == "" {
				break
			}
		}
	}
	return used, nil
}

// instances counts the pending and running instances by kind.
func (c *Capacity) instances(ctx context.Context) (map[kind]int, error) {
	count, ask := map[kind]int{}, arguments(filter{"instance-state-name", []string{"pending", "running"}})
	ask["MaxResults"] = pageSize
	for {
		var out struct {
			Items []struct {
				Type      string `xml:"instanceType"`
				Lifecycle string `xml:"instanceLifecycle"`
			} `xml:"reservationSet>item>instancesSet>item"`
			Next string `xml:"nextToken"`
		}
		if err := c.call(ctx, "DescribeInstances", ask, &out); err != nil {
			return nil, fmt.Errorf("describing instances: %w", err)
		}
		for _, i := range out.Items {
			count[kind{i.Type, i.Lifecycle == "spot"}]++
		}
		if ask["NextToken"] = out.Next; out.Next == "" {
			return count, nil
		}
	}
}

// RunningInstances returns those of the instances that are not terminated or terminating.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) RunningInstances(ctx context.Context, ids []string) ([]string, error) {
	var running []string
	for some := range slices.Chunk(ids, maxFilterValues) {
		ask := arguments(filter{"instance-id", some}, filter{"instance-state-name", []string{"pending", "running", "stopping", "stopped"}})
		var out struct {
			Items []struct {
				ID string `xml:"instanceId"`
			} `xml:"reservationSet>item>instancesSet>item"`
		}
		if err := c.call(ctx, "DescribeInstances", ask, &out); err != nil {
			return nil, fmt.Errorf("describing instances: %w", err)
		}
		for _, i := range out.Items {
			running = append(running, i.ID)
		}
	}
	return running, nil
}

// Named returns the names of the nodes that a node name or instance id may mean, by instance. Nodes of two clusters can have the same
// name. Terminated instances are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) Named(ctx context.Context, name string) (map[string]string, error) {
	by := "private-dns-name"
	if names.IsInstance(name) {
		by = "instance-id"
	}
	var out struct {
		Items []struct {
			ID   string `xml:"instanceId"`
			Name string `xml:"privateDnsName"`
		} `xml:"reservationSet>item>instancesSet>item"`
	}
	ask := arguments(filter{by, []string{name}}, filter{"instance-state-name", []string{"pending", "running", "stopping", "stopped"}})
	if err := c.call(ctx, "DescribeInstances", ask, &out); err != nil {
		return nil, fmt.Errorf("describing instances: %w", err)
	}
	named := map[string]string{}
	for _, i := range out.Items {
		if i.ID == name || i.Name == name { // EC2 reads * and ? as wildcards
			named[i.ID] = i.Name
		}
	}
	return named, nil
}

// Started returns the image from which each of the instances was launched. Those that do not exist are left out.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func (c *Capacity) Started(ctx context.Context, ids []string) (map[string]string, error) {
	images := map[string]string{}
	for some := range slices.Chunk(ids, maxFilterValues) {
		var out struct {
			Items []struct {
				ID    string `xml:"instanceId"`
				Image string `xml:"imageId"`
			} `xml:"reservationSet>item>instancesSet>item"`
		}
		if err := c.call(ctx, "DescribeInstances", arguments(filter{"instance-id", some}), &out); err != nil {
			return nil, fmt.Errorf("describing instances: %w", err)
		}
		for _, i := range out.Items {
			images[i.ID] = i.Image
		}
	}
	return images, nil
}
