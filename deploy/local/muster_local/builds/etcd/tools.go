//go:build tools

package builds

import _ "go.etcd.io/etcd/server/v3"
