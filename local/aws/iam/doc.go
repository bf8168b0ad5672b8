// Package iam simulates AWS IAM: roles, managed policies, instance profiles, OpenID Connect providers, the sessions of
// assumed roles, and the evaluation of policies. Every other service uses it to identify and authorize its callers.
// Package iamapi serves it through the APIs of IAM and STS and to CloudFormation.
package iam
