// Package eks simulates Amazon EKS in the local account: its API and its CloudFormation resources. Each cluster has a real Kubernetes
// control plane (see local/kubernetes), and KWOK simulates its nodes.
//
// Supported:
//   - Clusters: create, describe, list, update of version and configuration, delete. Statuses, updates, deletion protection, tags,
//     envelope encryption and logging as settings. A cluster security group and the control plane's network interfaces in EC2.
//     Creation takes nine minutes of simulated work, and the real control plane starts in parallel.
//   - Tiers, as a setting without effect. Settings of the components, with EKS's bounds: the real API server and controller manager run
//     with them. The scoring of the scheduler has no effect. What a template no longer states stays.
//   - One OIDC identity provider for each cluster, with its states. Tokens of it are not accepted.
//   - Capabilities (AWS::EKS::Capability), with their states and the permissions of the resource type's schema. No controller runs, no
//     access entry of their role exists, and IAM Identity Center is not simulated.
//   - Versions: the calendar of November 2026. The control plane is Kubernetes 1.36.3 and emulates 1.33 to 1.36 through
//     --emulated-version: /version has both (gitVersion and emulationMinor). Other minors of EKS are refused with
//     UnsupportedByLocalAccount.
//   - Version updates: eight minutes of simulated work. After five, the servers restart as the other version on the same data. The
//     API is unreachable for about two seconds, watches end, clients reconnect, and nodes and pods stay. On AWS the new servers
//     run in parallel with the old ones. An update needs five free addresses in each subnet and has its own network interfaces.
//     Config.UpdateFails makes it fail. A kubelet that is newer than the control plane may join, as with any API server. Its
//     problems are not simulated.
//   - Version rollback: UpdateClusterVersion with the previous version, within seven days of real time after an upgrade in place,
//     unless a rollback readiness insight has status ERROR and force is not set. A template with a lower version requests one
//     too. AWS's pages do not state this; the resource type has the property RollbackConfig. The rollback of a stack requests no
//     version rollback. A template with the cluster's current version changes nothing.
//   - Insights: UPGRADE_READINESS and ROLLBACK_READINESS, from the cluster's nodes, add-ons, subnets, health and its API server's
//     count of deprecated APIs, without the names of clients. Whether APIs in use fit the previous version is UNKNOWN. They are
//     refreshed after a day of real time, after a change of the version, and by StartInsightsRefresh. They block no upgrade, as
//     currently on AWS: https://github.com/aws/containers-roadmap/issues/2570
//   - Endpoints: reachable from where the access of the endpoint, publicAccessCidrs and security groups allow, and otherwise silent, so
//     that a client waits for its own timeout. An endpoint has one loopback address for each source of connections, where AWS has one
//     name. DescribeCluster returns the address of the caller's source, and the environment of a function has its own. Stacks return that
//     of users. Nodes always connect.
//   - Authentication: tokens are verified like in aws-iam-authenticator. Access entries (STANDARD, EC2_LINUX) map principals to
//     users. The access policies AmazonEKSClusterAdminPolicy, AdminPolicy, EditPolicy, ViewPolicy and AdminViewPolicy grant
//     permissions. Policies are RBAC bindings to the groups eks:access-policy:*, and on AWS an invisible authorizer. Only
//     AuthenticationMode API.
//   - Add-ons: a part of AWS's catalog, which DescribeAddonVersions returns. A version that the catalog does not have for the cluster's
//     Kubernetes version is refused, at creation and at update. They are real Deployments and DaemonSets with the real
//     image names. Those that need nodes are ACTIVE when their pods are available, and DEGRADED after 15 minutes of simulated work
//     without. Then the scheduler must have rejected a pod, or no pod became available for two real minutes, because the programs
//     that start pods are real and may be slow on a busy machine. Nodes are NotReady until vpc-cni or the self-managed CNI runs.
//   - Pod identity associations as records. Pods of KWOK nodes run no processes that could use them.
//   - Nodes: they register with their own identity (system:node:…, NodeRestriction applies) after EC2 has booted them. They need an
//     EC2_LINUX access entry of their role, and the cluster's endpoint and certificate authority in their user data. When an
//     instance ends, its Node object and its pods are deleted at once. Kubernetes' garbage collector takes a minute.
//
// Not supported: managed node groups, Fargate, Auto Mode, Outposts, hybrid nodes, IPv6, tokens of OIDC identity
// providers, custom CIDR limits of the endpoint (it is on the loopback address), the issuer's discovery document, delivery of
// control plane logs, encryption of the data in etcd, insights of the category MISCONFIGURATION, CancelUpdate.
package eks
