package main

// The settings of the cell: what specs may use in addition to the permissions of clusters. They are one object of the CDK context. Without
// them, no policy and no function has anything of them.

import (
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/shared/api"
)

// findCellSettings returns the settings of the context. The cdk command passes an object of cdk.json as an object, and a value of its
// command line as a string of JSON.
func findCellSettings(context any) (api.CellSettings, error) {
	switch value := context.(type) {
	case nil:
		return api.CellSettings{}, nil
	case string:
		return api.ParseCellSettings(value)
	}
	body, err := json.Marshal(context)
	if err != nil {
		return api.CellSettings{}, fmt.Errorf("context %q: %w", api.CellSettingsContext, err)
	}
	return api.ParseCellSettings(string(body))
}

// workloadGrants are the permissions of CloudFormation's role to give pods what the settings allow. There are none without settings.
func workloadGrants(s api.CellSettings) (grants []grant) {
	if len(s.WorkloadRoles) > 0 {
		grants = append(grants,
			grant{
				why: "Only to pods and EKS Capabilities: EC2 and Lambda cannot get these roles. The service authorization reference lists " +
					"eks.amazonaws.com for capabilities, and their roles trust capabilities.eks.amazonaws.com: " +
					"https://docs.aws.amazon.com/eks/latest/userguide/capability-role.html",
				actions:   []string{"iam:PassRole"},
				resources: s.WorkloadRoles,
				when: map[string]map[string]any{"StringEquals": {"iam:PassedToService": []string{
					"pods.eks.amazonaws.com", "capabilities.eks.amazonaws.com", "eks.amazonaws.com",
				}}},
			},
			grant{
				why: "EKS checks it for associations: " +
					"https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonelastickubernetesservice.html",
				actions:   []string{"iam:GetRole"},
				resources: s.WorkloadRoles,
			},
			grant{actions: []string{"eks:CreateCapability"}, resources: []string{eksClustersARN}},
			grant{
				actions: []string{
					"eks:DescribeCapability", "eks:UpdateCapability", "eks:DeleteCapability", "eks:DescribeUpdate", "eks:TagResource", "eks:UntagResource",
				},
				resources: []string{eksARN("capability")},
			},
		)
	}
	if s.IdentityCenter != "" {
		grants = append(grants, identityCenterGrants(s.IdentityCenter)...)
	}
	if len(s.WorkloadPolicies) > 0 {
		bounded := map[string]any{"iam:PermissionsBoundary": s.WorkloadBoundary}
		var policies []string
		for _, name := range s.WorkloadPolicies {
			policies = append(policies, managedPolicyARN+name)
		}
		grants = append(grants,
			grant{
				why: "Roles with the workloads' boundary have no inline policies, and no role gets that boundary later. So a template cannot give " +
					"such a role anything but the policies below.",
				actions:   []string{"iam:CreateRole"},
				resources: []string{clusterRolesARN},
				when:      map[string]map[string]any{"StringEquals": bounded},
			},
			grant{
				actions:   []string{"iam:AttachRolePolicy"},
				resources: []string{clusterRolesARN},
				when:      map[string]map[string]any{"StringEquals": bounded, "ArnEquals": {"iam:PolicyARN": policies}},
			},
		)
	}
	return grants
}
