new () 
{ 
    T new-session -d -s $1 -x $2 -y ${3:-45} -c /tmp/acc19/p "env WINDLASS_HOME=$WINDLASS_HOME HOME=$HOME PATH=$PATH IGNOREEOF=100 bash --norc";
    sleep .3
}
