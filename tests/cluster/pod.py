"""What Kubernetes and the MPI operator do with an MPIJob, as far as a test needs it. The fields and what the operator
adds are those of its API v2beta1: github.com/kubeflow/mpi-operator, pkg/apis/kubeflow/v2beta1/types.go and
pkg/controller/mpi_job_controller.go.
usage: pod.py check JOB.yaml             every field is one that the API knows, with its type
       pod.py workers JOB.yaml           how many workers, and how many slots each
       pod.py Launcher|Worker JOB.yaml NAME   the shell commands of that role's container, in the job NAME"""
import shlex
import sys
import yaml

# A dict holds the accepted fields, those with "!" are required; a list holds the form of each item; a tuple the accepted
# words; "map" any names with texts.
MOUNT = {"name!": str, "mountPath!": str, "readOnly": bool}
VARIABLE = {"name!": str, "value": str, "valueFrom": {"fieldRef!": {"fieldPath!": str}}}
CONTAINER = {"name!": str, "image!": str, "workingDir": str, "command": [str], "args": [str], "env": [VARIABLE],
             "volumeMounts": [MOUNT], "resources": {"limits": "map", "requests": "map"},
             "securityContext": {"capabilities": {"add": [str]}}}
VOLUME = {"name!": str, "persistentVolumeClaim": {"claimName!": str}, "emptyDir": {"medium": ("Memory",)}}
REPLICA = {"replicas!": int, "restartPolicy": ("Never", "OnFailure"),
           "template!": {"spec!": {"containers!": [CONTAINER], "volumes": [VOLUME]}}}
MPIJOB = {"apiVersion!": ("kubeflow.org/v2beta1",), "kind!": ("MPIJob",), "metadata!": {"generateName!": str},
          "spec!": {"slotsPerWorker": int, "launcherCreationPolicy": ("AtStartup", "WaitForWorkersReady"),
                    "runPolicy": {"cleanPodPolicy": ("None", "Running", "All"), "activeDeadlineSeconds": int,
                                  "backoffLimit": int},
                    "mpiReplicaSpecs!": {"Launcher!": REPLICA, "Worker!": REPLICA}}}


def check(value, form, path):
    if isinstance(form, dict):
        assert isinstance(value, dict), f"{path} is no map"
        known = {name.rstrip("!") for name in form}
        assert set(value) <= known, f"{path} has {set(value) - known}, which the API does not know"
        for name, inner in form.items():
            assert not name.endswith("!") or name[:-1] in value, f"{path} lacks {name[:-1]}"
            if name.rstrip("!") in value: check(value[name.rstrip("!")], inner, f"{path}.{name.rstrip('!')}")
    elif isinstance(form, list):
        assert isinstance(value, list), f"{path} is no list"
        for index, item in enumerate(value): check(item, form[0], f"{path}[{index}]")
    elif isinstance(form, tuple):
        assert value in form, f"{path} is {value}, and not one of {form}"
    elif form == "map":
        assert all(isinstance(name, str) for name in value), f"{path} is no map of names"
    else:
        assert type(value) is form, f"{path} is {value!r}, and no {form.__name__}"


what, path = sys.argv[1:3]
with open(path) as file: job = yaml.safe_load(file)
check(job, MPIJOB, "job")
roles = job["spec"]["mpiReplicaSpecs"]
if what == "workers":
    print(roles["Worker"]["replicas"], job["spec"]["slotsPerWorker"])
elif what != "check":
    name = sys.argv[3]
    spec = roles[what]["template"]["spec"]
    assert {mount["name"] for mount in spec["containers"][0]["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
    container = spec["containers"][0]
    labels = {"metadata.labels['training.kubeflow.org/job-name']": name}
    # The operator adds these to the launcher.
    variables = {"OMPI_MCA_orte_keep_fqdn_hostnames": "true", "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                 "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10"} if what == "Launcher" else {}
    for one in container.get("env", []):
        variables[one["name"]] = one["value"] if "value" in one else labels[one["valueFrom"]["fieldRef"]["fieldPath"]]
    for key, value in variables.items(): print(f"export {key}={shlex.quote(value)}")
    print("cd " + shlex.quote(container["workingDir"]))
    print("exec " + shlex.join(container["command"] + container.get("args", [])))
