package render
import ("testing";"os";"fmt";"github.com/drover-run/drover/shared/api")
func TestScratch(t *testing.T){
 cb,_:=os.ReadFile("../../examples/clusters/demo.yaml"); rb,_:=os.ReadFile("../../examples/releases/1.36-1.yaml")
 c,e:=api.DecodeCluster("x",cb); if len(e)>0{t.Fatal(e)}
 r,e:=api.DecodeRelease("x",rb); if len(e)>0{t.Fatal(e)}
 c,e=api.Resolve(c,r); if len(e)>0{t.Fatal(e)}
 o,err:=Render(Cluster{Cell:Cell{Partition:"aws",Region:"us-east-1",Account:"123456789012",StateBucket:"drover-state-123456789012-us-east-1"},Resolved:c})
 if err!=nil{t.Fatal(err)}
 for _,s:=range o.Stacks[1:]{ fmt.Println("=====",s.StackName,s.Parameters,s.Capabilities,s.Protected,s.Tags,len(s.Template)); os.Stdout.Write(s.Template)}
 for k,v:=range o.UserData{fmt.Println(k);os.Stdout.Write(v)}
}
