package main

// The roles of the functions. Access entries of clusters name the roles of five functions. EKS stores the unique ID of a role with its
// access entry, so a role that is deleted and created again under the same name loses its access. These roles are therefore in the base
// stack, which outlives a removal of drover.
// https://docs.aws.amazon.com/eks/latest/APIReference/API_AccessEntry.html

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// clusterCallers are the functions that call the Kubernetes API of clusters: those for which templates/v1 renders access entries.
var clusterCallers = []string{"prepare", "join", "drain", "upgrade", "sweep"}

// functionRoles are the roles by function.
type functionRoles map[string]awsiam.IRole

// newFunctionRoles creates each role in its stack. The cell stack uses the roles of the base stack by name.
func newFunctionRoles(base, cell constructs.Construct) functionRoles {
	roles := make(functionRoles, len(functionTable))
	for _, f := range functionTable {
		props := roleProps{
			suffix:      f.name,
			service:     "lambda.amazonaws.com",
			description: "drover: " + f.description,
			grants:      grantsOf(f),
		}
		id := constructID(f.name) + "Role"
		if !slices.Contains(clusterCallers, f.name) {
			roles[f.name] = newRole(cell, id, props)
			continue
		}
		newRole(base, id, props)
		roles[f.name] = awsiam.Role_FromRoleArn(cell, jsii.String(id), sub(roleARN(f.name)), &awsiam.FromRoleArnOptions{
			Mutable: jsii.Bool(false),
		})
	}
	return roles
}
