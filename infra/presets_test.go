package main

// The presets of pod identities against the policies of the controllers' projects, within the permissions boundary of clusters.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/local/aws/iam"
	"github.com/drover-run/drover/shared/names"
)

// leftOut are the actions of the projects' policies that presets do not allow. docs/before-you-begin.md names them.
var leftOut = []string{
	"eks:DescribeNodegroup", "ec2:GetInstanceTypesFromInstanceRequirements", // no pool is a managed node group or selects types by attributes
	"ec2:GetCoipPoolUsage", "ec2:DescribeCoipPools", // Outposts
	"cognito-idp:", "acm:", "iam:ListServerCertificates", "iam:GetServerCertificate", "waf-regional:", "wafv2:", "shield:",
}

func TestPresets(t *testing.T) {
	for file, serviceAccount := range map[string]string{
		"cluster-autoscaler": "autoscaler", "aws-load-balancer-controller": "aws-load-balancer-controller",
	} {
		t.Run(file, func(t *testing.T) {
			caller, other := presetRole(t, serviceAccount, "full"), presetRole(t, serviceAccount, "other")
			body, err := os.ReadFile(filepath.Join("testdata", "upstream", file+".json"))
			require.NoError(t, err)
			var upstream struct {
				Statement []struct {
					Action    []string
					Resource  any
					Condition map[string]map[string]any
				}
			}
			require.NoError(t, json.Unmarshal(body, &upstream))
			allowed, denied, isolated := 0, 0, 0
			for _, s := range upstream.Statement {
				for _, action := range s.Action {
					for _, resource := range resourcesOf(s.Resource, action) {
						keys := keysOf(s.Condition)
						for key, value := range narrowed(action, resource) {
							keys[key] = value
						}
						if strings.HasPrefix(action, "autoscaling:") { // the tag of the group, which drover sets
							keys["aws:ResourceTag/drover:cluster"] = "full"
						}
						err := caller.Authorize(action, resource, keys)
						if slices.ContainsFunc(leftOut, func(prefix string) bool { return strings.HasPrefix(action, prefix) }) {
							require.Error(t, err, "%s is not left out", action)
							denied++
							continue
						}
						require.NoError(t, err, "%s on %s with %v", action, resource, keys)
						allowed++
						if strings.Contains(fmt.Sprint(keys), "full") && !strings.Contains(action, ":Describe") {
							require.Error(t, other.Authorize(action, resource, keys), "another cluster may %s on %s", action, resource)
							isolated++
						}
					}
				}
			}
			for _, action := range untagged {
				require.Error(t, caller.Authorize(action, resourcesOf("*", action)[0], nil), "%s on what belongs to another owner", action)
			}
			require.NotZero(t, allowed)
			require.NotZero(t, denied)
			require.NotZero(t, isolated)
		})
	}
}

// untagged are mutations for which the project's policy has no condition, and the preset has one.
var untagged = []string{
	"ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress",
	"elasticloadbalancing:CreateListener", "elasticloadbalancing:DeleteListener", "elasticloadbalancing:CreateRule",
	"elasticloadbalancing:DeleteRule", "elasticloadbalancing:ModifyListener", "elasticloadbalancing:ModifyRule",
	"elasticloadbalancing:SetRulePriorities", "elasticloadbalancing:AddListenerCertificates",
	"elasticloadbalancing:RemoveListenerCertificates", "elasticloadbalancing:SetWebAcl",
}

// narrowed returns the tags of what the controller works on, where only the preset requires them.
func narrowed(action, resource string) map[string]string {
	switch {
	case strings.HasSuffix(action, "SecurityGroupIngress"): // of nodes
		return map[string]string{"aws:ResourceTag/kubernetes.io/cluster/drover-full": "owned"}
	case slices.Contains(untagged, action), strings.HasSuffix(action, "Tags") && strings.Contains(resource, ":listener"):
		return map[string]string{"aws:ResourceTag/elbv2.k8s.aws/cluster": "drover-full"}
	}
	return nil
}

// presetRole returns a caller with the rendered policy of a preset and the boundary. The policy is that of a cluster of another name if the
// name is not full.
func presetRole(t *testing.T, serviceAccount, cluster string) iam.Caller {
	t.Helper()
	body, err := os.ReadFile("../shared/render/testdata/golden/v1/full/identities.yaml")
	require.NoError(t, err)
	var template struct {
		Resources map[string]struct {
			Properties struct {
				ServiceAccount string           `yaml:"ServiceAccount"`
				RoleArn        any              `yaml:"RoleArn"`
				Policies       []map[string]any `yaml:"Policies"`
			} `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	require.NoError(t, yaml.Unmarshal(body, &template))
	for id, r := range template.Resources {
		if r.Properties.ServiceAccount != serviceAccount {
			continue
		}
		document, err := json.Marshal(template.Resources[id+"Role"].Properties.Policies[0]["PolicyDocument"])
		require.NoError(t, err)
		text := strings.NewReplacer("drover-full", "drover-"+cluster, `"full"`, `"`+cluster+`"`).Replace(string(document))
		s := account(t)
		made, err := s.CreateRole(iam.Role{
			Name: "drover-full-identities-1", Path: names.ClusterRoles, Boundary: names.BoundaryARN(testPartition, testAccount, testRegion),
			TrustDocument: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},` +
				`"Action":["sts:AssumeRole","sts:TagSession"]}]}`,
		})
		require.NoError(t, err)
		require.NoError(t, s.PutRolePolicy(made.Name, "preset", text))
		caller, _, err := s.AssumeRoleAs(s.RoleARN(made), "pod", "pods.eks.amazonaws.com")
		require.NoError(t, err)
		return caller
	}
	require.Fail(t, "no such service account", serviceAccount)
	return iam.Caller{}
}

// resourcesOf returns the resources of a statement in the account of the tests.
func resourcesOf(resource any, action string) (resources []string) {
	list, several := resource.([]any)
	if !several {
		list = []any{resource}
	}
	for _, one := range list {
		arn := one.(string)
		switch service, _, _ := strings.Cut(action, ":"); {
		case arn != "*":
			arn = strings.Replace(arn, ":*:*:", ":"+testRegion+":"+testAccount+":", 1)
		case action == "iam:CreateServiceLinkedRole":
			arn = "arn:aws:iam::" + testAccount + ":role/aws-service-role/elasticloadbalancing.amazonaws.com/AWSServiceRoleForElasticLoadBalancing"
		case strings.Contains(action, ":Describe"):
		case service == "autoscaling":
			arn = "arn:aws:autoscaling:" + testRegion + ":" + testAccount + ":autoScalingGroup:1:autoScalingGroupName/drover-full-pool-a"
		case service == "ec2":
			arn = "arn:aws:ec2:" + testRegion + ":" + testAccount + ":security-group/sg-1"
		case service == "elasticloadbalancing":
			arn = "arn:aws:elasticloadbalancing:" + testRegion + ":" + testAccount + ":loadbalancer/app/a/1"
		}
		resources = append(resources, strings.ReplaceAll(arn, "*", "x"))
	}
	return resources
}

// keysOf returns keys with which a condition holds, with the name of the cluster as the value of its tag.
func keysOf(condition map[string]map[string]any) map[string]string {
	keys := map[string]string{}
	for operator, conditions := range condition {
		for key, value := range conditions {
			switch list, several := value.([]any); {
			case several:
				keys[key] = list[0].(string)
			case operator == "Null" && value == "false":
				keys[key] = "drover-full"
			case operator == "StringEquals":
				keys[key] = value.(string)
			}
		}
	}
	return keys
}
