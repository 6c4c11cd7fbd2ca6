// The API server of Kubernetes with an etcd in its own process: arguments are FOLDER, etcd's two ports, and then those
// of kube-apiserver.
package main

import (
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func local(port string) []url.URL {
	return []url.URL{{Scheme: "http", Host: "127.0.0.1:" + port}}
}

func main() {
	folder, client, peer := os.Args[1], os.Args[2], os.Args[3]
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = folder, "error", true
	config.ListenClientUrls, config.AdvertiseClientUrls = local(client), local(client)
	config.ListenPeerUrls, config.AdvertisePeerUrls = local(peer), local(peer)
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-etcd.Server.ReadyNotify()
	command := app.NewAPIServerCommand()
	command.SetArgs(append([]string{"--etcd-servers=http://127.0.0.1:" + client}, os.Args[4:]...))
	os.Exit(cli.Run(command))
}
