"""OpenMM's CUDA platform: particles in a box for some steps."""

import openmm as mm
from report import same

PARTICLES = 2000

same("platforms", [mm.Platform.getPlatform(i).getName() for i in range(mm.Platform.getNumPlatforms())])
same("plugins that fail", [line.splitlines()[0] for line in mm.Platform.getPluginLoadFailures()])
system = mm.System()
force = mm.CustomExternalForce("k*(x^2+y^2+z^2)")
force.addGlobalParameter("k", 1.0)
for i in range(PARTICLES):
    system.addParticle(40.0)
    force.addParticle(i, [])
system.addForce(force)
platform = mm.Platform.getPlatformByName("CUDA")
context = mm.Context(system, mm.VerletIntegrator(0.001), platform, {"Precision": "single"})
same("device", platform.getPropertyValue(context, "DeviceName"))
context.setPositions([mm.Vec3(0.01 * i, 0, 0) for i in range(PARTICLES)])
context.getIntegrator().step(500)
same("particles", len(context.getState(getPositions=True).getPositions()))
