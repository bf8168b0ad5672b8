// Package ec2 is the local account's EC2: VPC networking as far as Kubernetes clusters need it, launch templates, and
// instances that boot as AL2023 EKS nodes do.
//
// What is there: VPCs with secondary ranges, subnets, internet gateways, Elastic IP addresses with their quota, NAT
// gateways and interface endpoints that take their time, route tables, gateway endpoints, security groups, network
// interfaces (as what keeps subnets and groups from being deleted), launch templates with versions, instances with their
// disks, tags on all of them, the Describe calls with filters and pages, IAM on every action with resource ARNs and the
// aws:RequestTag, aws:ResourceTag, aws:TagKeys and common ec2: condition keys, and the CloudFormation resource types.
//
// Instances boot by their user data as nodeadm reads it and register through Nodes. Shell scripts are not run; that a
// script fetches userdata/<sha256> from S3 is recognised, the read is done as the instance's role and the hash verified.
//
// What is not: packets. Routes, rules and ACLs are kept and checked for form, but nothing is blocked by them: a node in a
// subnet without a way out joins all the same. IPv6, peering, transit gateways, prefix lists, network ACLs, placement
// groups, capacity reservations, dedicated hosts, snapshots and stopping instances are unknown, and errors that say so.
// Network interfaces are made by other services only. Free addresses of subnets are those that no network interface has, less the five
// that EC2 keeps; those that the VPC CNI would take for pods are not taken.
package ec2
