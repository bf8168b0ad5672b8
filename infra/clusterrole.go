package main

// The role that CloudFormation uses on the stacks of clusters.

import "github.com/aws/constructs-go/constructs/v10"

// clusterRole ends the role's name.
const clusterRole = "cloudformation"

func newClusterRole(scope constructs.Construct) {
	newRole(scope, "ClusterRole", roleProps{
		step:    clusterRole,
		service: "cloudformation.amazonaws.com",
		// CloudFormation does not document for whom it says it acts. A role cannot be passed to a service of another account,
		// and passing this one is the change function's permission alone.
		anyAccount:  true,
		description: "drover: creates, changes and deletes the resources of clusters for CloudFormation",
		grants:      clusterGrants,
	})
}

var clusterGrants = []grant{describeEKS}
