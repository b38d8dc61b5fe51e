document.addEventListener("keydown", function (event) {
  var step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  var reply = event.target.closest ? event.target.closest(".reply") : null;
  if (!step || !reply) return;
  var tokens = Array.prototype.slice.call(reply.querySelectorAll(".t[tabindex]"));
  var next = tokens[event.target === reply ? (step === 1 ? 0 : tokens.length - 1) : tokens.indexOf(event.target) + step];
  if (next) { next.focus(); event.preventDefault(); }
});
document.addEventListener("focusin", keepInside);
document.addEventListener("mouseover", keepInside);
function keepInside(event) {
  var token = event.target.closest ? event.target.closest(".t[tabindex]") : null;
  var box = token ? token.querySelector(".a") : null;
  if (!box) return;
  box.style.left = "0px";
  var over = box.getBoundingClientRect().right - document.documentElement.clientWidth + 8;
  if (over > 0) box.style.left = -over + "px";
}
