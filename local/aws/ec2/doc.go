// Package ec2 simulates Amazon EC2 in the local account: VPC networking for Kubernetes clusters, launch templates, and instances that boot
// like AL2023 EKS nodes.
//
// Supported:
//   - VPCs with secondary ranges, subnets, internet gateways, Elastic IP addresses, route tables, gateway endpoints, and NAT
//     gateways and interface endpoints with their creation times. Quotas limit VPCs, internet gateways, NAT gateways and Elastic IP
//     addresses.
//   - Security groups with rules, and network interfaces, which prevent the deletion of their subnets and groups. Those of Lambda functions
//     have the type lambda and no tags.
//   - Launch templates with versions, instances with their disks, and tags on all resources. Disks may begin with a snapshot, which only
//     AddSnapshot creates.
//   - Flow logs of VPCs to S3, without effect.
//   - Describe calls with filters and pages.
//   - IAM on every action with resource ARNs and the condition keys aws:RequestTag, aws:ResourceTag, aws:TagKeys and the common
//     ones of ec2:.
//   - The CloudFormation resource types.
//
// Instances boot with their user data as nodeadm reads it, and register through Nodes. Shell scripts do not run. If a script fetches
// userdata/<sha256> from S3, the local account reads the object with the instance's role and verifies its hash.
//
// Packets are not simulated. Routes and rules are stored and validated, but block nothing: a node in a subnet without
// internet access still joins. One exception: security groups decide whether a function in a VPC can connect to an
// EKS endpoint. These are not supported, and each is an error that names it: IPv6, peering, transit gateways, prefix
// lists, network ACLs, placement groups, capacity reservations, dedicated hosts, creating snapshots, and stopping instances.
// Only other services create network interfaces. The free addresses of a subnet are those without a network
// interface, less the five that EC2 reserves. The VPC CNI would take addresses for pods; that is not simulated.
package ec2
