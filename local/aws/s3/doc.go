// Package s3 simulates Amazon S3. versitygw (github.com/versity/versitygw) stores buckets and objects on disk. A
// proxy in front of versitygw authorizes each request by IAM and the bucket policies, stores the bucket configuration
// that versitygw does not support, and sends object events to EventBridge. NewInMemory replaces versitygw by a store
// in memory.
//
// It supports buckets, versions, delete markers, conditional reads, writes and deletes, multipart uploads, copies, tags, presigned URLs,
// path style, and host style under localhost. Without s3:ListBucket, a request for an absent key gets 403 instead of 404.
//
// It stores and returns, without effect: encryption, lifecycle, public access block, ownership controls.
//
// It rejects ACLs, websites, replication, object lock, server access logs, S3 Select, and notifications other than to
// EventBridge. Anonymous requests are denied. Requests arrive on the loopback interface and count as secure transport.
//
// Differences from AWS: a key cannot be a folder of another key ("a" and "a/b"). Deleting a key that never existed
// creates no delete marker. DeleteObjects is denied as a whole unless all its keys are allowed.
//
// versitygw changes the working directory of the process and can run only once in a process: use absolute paths
// everywhere.
package s3
