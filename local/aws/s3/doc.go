// Package s3 is the account's S3: versitygw (github.com/versity/versitygw) keeps buckets and objects on disk, behind a
// front that authorizes each request by the account's IAM and the buckets' policies, keeps the bucket configuration that
// versitygw has no place for, and sends object events to EventBridge.
//
// There is: buckets, versions, delete markers, conditional reads, writes and deletes, multipart uploads, copies, tags,
// presigned URLs, path style and host style under localhost. 403 instead of 404 for absent keys without s3:ListBucket.
// Kept and told but without effect: encryption, lifecycle, public access block, ownership controls. There are no ACLs,
// website, replication, object lock, server access logs, S3 Select or notifications other than to EventBridge.
// Anonymous requests are always refused. Requests come over the loopback interface: they count as secure transport.
//
// Known differences: a key cannot be a folder of another key ("a" and "a/b"); deleting a key that never existed makes no
// delete marker; of DeleteObjects all keys must be allowed or the whole request is denied.
//
// versitygw changes the process's working directory and can run only once in a process: use absolute paths everywhere.
package s3
