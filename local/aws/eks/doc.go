// Package eks is Amazon EKS of the local account: its API, its CloudFormation resources, and behind each cluster a real
// Kubernetes control plane (see local/kubernetes) whose nodes are played by KWOK.
//
// What is there:
//   - Clusters: create, describe, list, update of version and configuration, delete; statuses, updates, deletion
//     protection, tags, envelope encryption and logging as settings; a cluster security group and the control plane's
//     network interfaces in EC2. Creation takes nine minutes of simulated work; the real control plane starts meanwhile.
//   - Versions: the calendar of November 2026. The control plane is Kubernetes 1.36.3 and acts as 1.33 to 1.36 through
//     --emulated-version: /version tells both (gitVersion and emulationMinor). Other minors that EKS has are refused with
//     UnsupportedByLocalAccount. An update takes eight minutes of simulated work; after five the servers start again as the other
//     version on the same data: the API does not answer for about two seconds, watches end and clients begin anew, nodes and pods
//     stay. On AWS the new servers stand beside the old ones. It needs five free addresses in each subnet and has network
//     interfaces of its own meanwhile; Config.UpdateFails has EKS fail it. A kubelet that is newer than the control plane is let
//     in, as by any API server; that it would not work well is not played.
//   - Version rollback: by UpdateClusterVersion with the version before, within seven days of real time after an upgrade in place,
//     unless a rollback readiness insight has status ERROR and force is not set. A template of a lower version asks for one,
//     too, which no page says in so many words (the resource type has a RollbackConfig); a stack that is rolled back does not. A
//     template whose version the cluster has already changes nothing.
//   - Insights: UPGRADE_READINESS and ROLLBACK_READINESS, made from the cluster's nodes, add-ons, subnets, health and its API server's
//     count of deprecated APIs, without the names of clients; whether APIs in use fit the previous version is UNKNOWN. Looked at anew
//     after a day of real time, when the version has changed, or when StartInsightsRefresh asks. They hold up no upgrade, as AWS's
//     do not at present: https://github.com/aws/containers-roadmap/issues/2570
//   - Authentication: tokens are verified as aws-iam-authenticator does; access entries (STANDARD, EC2_LINUX) say who one
//     is in the cluster, and the access policies AmazonEKSClusterAdminPolicy, AdminPolicy, EditPolicy, ViewPolicy and
//     AdminViewPolicy what one may do. Here policies are RBAC bindings to the groups eks:access-policy:*, on AWS an
//     authorizer that cannot be seen. Only AuthenticationMode API.
//   - Add-ons: a part of AWS's catalogue, which DescribeAddonVersions tells. They are real Deployments and DaemonSets with
//     the real image names; those that need nodes are ACTIVE when their pods are available, DEGRADED after 15 minutes of
//     simulated work without. Then the scheduler must have rejected one, or none became available for two real minutes: the
//     programs that start them are real, and late on a busy machine. Nodes are NotReady until vpc-cni (or the self-managed CNI) is there.
//   - Pod identity associations: as records; pods of KWOK nodes run no processes that could use them.
//   - Nodes: registered by their own identity (system:node:…, NodeRestriction applies) once EC2 has booted them, with an
//     EC2_LINUX access entry of their role; endpoint and certificate authority of their user data must be the cluster's. With
//     an instance its Node object goes, and the pods on it at once, where Kubernetes' garbage collector takes a minute.
//
// What is not: managed node groups, Fargate, Auto Mode, Outposts, hybrid nodes, IPv6, provisioned control planes, OIDC
// identity providers, custom CIDR limits of the endpoint (it is on the loopback address), the issuer's discovery document,
// delivery of control plane logs, encryption of the data in etcd, insights of the category MISCONFIGURATION, CancelUpdate.
package eks
