// Package iam is the account's identities: roles, managed policies, instance profiles, OpenID Connect providers, the
// sessions of assumed roles, and the evaluation of policies. Every other service asks it who calls and what they may do.
// Package iamapi serves it over IAM's and STS's APIs and to CloudFormation.
package iam
